package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// place is a key's place in the table of a limiter. It is the home of the key's bucket.
type place[K comparable] struct {
	*Limiter[K]
	key K
	// tier is the tier that the call names, plus 1. If it is negative, the key keeps its tier, and
	// gets this one only with a new bucket. If it is 0, that bucket is in tier 0.
	tier int
}

func (p place[K]) load() *cell { return p.table.Load(p.key) }
func (p place[K]) layout() *layout {
	if m := p.limits.one.Load(); m != nil {
		return m
	}
	return p.tierLayout()
}

func (p place[K]) tierLayout() *layout {
	if p.tier > 0 {
		return p.limits.tiers[p.tier-1].Load()
	}
	return p.Limiter.tierLayout(p.key, max(-p.tier-1, 0))
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
	cost := want.cost(m)
	if cost > m.capacity && !want.rest {
		return result{Decision: m.fullDecision(cost), delay: tb.Never}, true, nil
	}
	var s sum
	var word uint64
	c, until, inserted := p.table.Insert(p.key, t, t-min(t, idleTime), func(c *cell) {
		var base uint64
		s, base, word = m.first(max(t, p.evictor.earliest), t, &want)
		c.init(m, base, word)
	})
	switch inserted {
	case lru.Found:
		return o, false, nil
	case lru.Refused:
		p.evictor.refused.Add(1)
		wait := m.wait(t, until)
		return result{Decision: tb.Decision{RetryAfter: wait}, delay: wait}, true, nil
	}
	return s.grant(m, receipt{c, evicted, word}), true, nil
}

// enter moves the key to the tier that the call names, unless it is in that tier or not in the table.
func (p place[K]) enter(t uint64) {
	for moved := false; !moved; {
		c, m := p.load(), p.layout()
		if c == nil || c.tier() == tierOf(m.owner) {
			return
		}
		word := c.word.Load()
		if word == evicted {
			return
		}
		if isSealed(word) && p.load() != c { // m may be later than the successor of c
			continue
		}
		has := p.limits.view(m, c, word, t)
		_, moved = swap(p, m, c, word, t, has, has)
	}
}

// peek returns what a call would decide, and the key's cell if there is one.
func (p place[K]) peek(t uint64, want request) (tb.Decision, *cell, error) {
	c, m, has, refused, err := p.lookUp(t)
	if err != nil {
		return tb.Decision{}, nil, err
	}
	switch units := want.in(m); {
	case c != nil:
		return m.check(has, t, &want), c, nil
	case refused > 0 && units <= m.capacity:
		return tb.Decision{RetryAfter: refused}, nil, nil
	default:
		return m.fullDecision(units), nil, nil
	}
}

func (p place[K]) level(t uint64) (tb.Level, error) {
	if c := p.load(); c != nil {
		m := p.layout()
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

// lookUp returns key's cell and layout, and the bucket's balance in that layout. If the key is not in
// the table, it returns a nil cell, and how long the table would refuse the key, or 0.
func (p place[K]) lookUp(
	t uint64,
) (c *cell, m *layout, has balance, refused time.Duration, err error) {
	if isNaN(p.key) {
		return nil, nil, has, 0, tb.ErrInvalidKey
	}
	for {
		c = p.load()
		m = p.layout()
		if c != nil {
			if own := c.word.Load(); own != evicted {
				has = p.limits.view(m, c, own, t)
				if !isSealed(own) && m.owns(c) || p.load() == c && c.word.Load() == own {
					return c, m, has, 0, nil
				}
				continue // a layout may be later than the state of c
			}
		}
		until, full := p.table.Refuses(t)
		if !full {
			return nil, m, has, 0, nil
		}
		if p.load() == c { // still absent: the key itself did not fill the table
			return nil, m, has, m.wait(t, until), nil
		}
	}
}
