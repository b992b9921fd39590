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

func (p place[K]) refuses(m *layout, t uint64) (time.Duration, error) {
	if isNaN(p.key) {
		return 0, tb.ErrInvalidKey
	}
	until, refused := p.table.Refuses(t)
	if !refused {
		return 0, nil
	}
	return m.wait(t, until), nil
}
