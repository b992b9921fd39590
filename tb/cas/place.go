package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// place is a key's place in the table of a limiter. It is the home of the key's bucket.
type place[K comparable] struct {
	*Limiter[K]
	key    K
	tier   int  // of a new bucket
	enters bool // the key enters the tier if it is in another one
}

func (p place[K]) load() *cell { return p.table.Load(p.key) }
func (p place[K]) layoutOf(c *cell) *layout {
	if c == nil || p.enters {
		return p.limits.present(p.tier)
	}
	return p.limits.layoutOf(c)
}

func (p place[K]) shared() *limits { return &p.limits }
func (p place[K]) now() uint64     { return p.clock.read() }

func (p place[K]) replace(old *cell, m *layout, base, word uint64) *cell {
	return p.table.Replace(p.key, old, func(next *cell) { next.init(m, base, word) })
}

// insert decides a call on a key that is not in the table.
func (p place[K]) insert(m *layout, t uint64, want request) (o result, done bool, err error) {
	if isNaN(p.key) {
		return o, true, tb.ErrInvalidKey
	}
	next, o := m.decide(balance{time: m.supply.at(t)}, t, &want)
	if !o.Allowed { // the cost is above the capacity
		return o, true, nil
	}
	base := m.baseOf(next, t)
	word, full := m.wordOf(base, next), m.fullAt(next)
	c, until, inserted := p.table.Insert(p.key, t, t-min(t, idleTime), func(c *cell) uint64 {
		if start := p.evictor.earliest; start > t {
			next, o = m.decide(balance{time: m.supply.at(start)}, t, &want)
			word = c.first(m, next, t).after
			return m.fullAt(next)
		}
		c.init(m, base, word)
		return full
	})
	switch inserted {
	case lru.Found:
		return result{}, false, nil
	case lru.Refused:
		p.evictor.refused.Add(1)
		wait := m.wait(t, until)
		return result{Decision: tb.Decision{RetryAfter: wait}, delay: wait}, true, nil
	}
	o.receipt = receipt{c, evicted, word}
	return o, true, nil
}

// enter moves the key to the tier, unless it is in that tier or not in the table.
func (p place[K]) enter(t uint64) {
	visit(p, p.load(), t, func(m *layout, c *cell, has balance) (balance, bool) {
		return has, c.tier() != tierOf(m.owner)
	})
}

// peek returns what a call would decide, and the key's cell if there is one.
func (p place[K]) peek(t uint64, want request) (tb.Decision, *cell, error) {
	c, m, has, refused, err := p.lookUp(t)
	if err != nil {
		return tb.Decision{}, nil, err
	}
	switch units := want.cost(m); {
	case c != nil:
		_, o := m.decide(has, t, &want)
		return o.Decision, c, nil
	case refused > 0 && units <= m.capacity:
		return tb.Decision{RetryAfter: refused}, nil, nil
	default:
		return m.fullDecision(units), nil, nil
	}
}

func (p place[K]) level(t uint64) (tb.Level, error) {
	if c := p.load(); c != nil {
		m := p.layoutOf(c)
		if word := c.word.Load(); !isSealed(word) && m.owns(c) {
			return m.level(m.balanceOf(c.base, word), t), nil
		}
	}
	c, m, has, refused, err := p.lookUp(t)
	switch {
	case err != nil:
		return tb.Level{}, err
	case c != nil:
		return m.level(has, t), nil
	case refused > 0:
		return tb.Level{NextToken: refused, Full: refused}, nil
	}
	return tb.Level{Tokens: float64(m.tokens)}, nil
}

// lookUp returns key's cell and layout, and the bucket's balance in that layout. If the key is not
// in the table, it returns a nil cell, and how long the table would refuse the key, or 0.
func (p place[K]) lookUp(
	t uint64,
) (c *cell, m *layout, has balance, refused time.Duration, err error) {
	if isNaN(p.key) {
		return nil, nil, has, 0, tb.ErrInvalidKey
	}
	for {
		before := p.load()
		_, found := visit(p, before, t, func(l *layout, own *cell, b balance) (balance, bool) {
			c, m, has = own, l, b
			return b, false
		})
		if found {
			return c, m, has, 0, nil
		}
		m = p.layoutOf(nil)
		until, full := p.table.Refuses(t)
		if !full {
			return nil, m, has, 0, nil
		}
		if p.load() == before { // the key itself did not fill the table
			return nil, m, has, m.wait(t, until), nil
		}
	}
}
