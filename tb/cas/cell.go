package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// cell is the state of a bucket at one base. The package documentation explains the word.
type cell struct {
	word atomic.Uint64
	base uint64 // in blocks (see position); immutable
}

// verdict says whether take has decided, or what prevented it.
type verdict int

const (
	decided  verdict = iota
	mustMove         // the delta ran out: only a successor can grant the call
	gone             // the cell was evicted
)

// init sets up a cell that no other goroutine has yet.
func (c *cell) init(base, word uint64) *cell {
	c.base = base
	c.word.Store(word)
	return c
}

// step is the token bucket. It returns the delta and the deficit that a call of the given cost
// would leave at elapsed units after the base. The units supplied since the bucket's own time
// refill it. If elapsed is less than delta, the bucket keeps its time. The call is granted if the
// deficit is within the capacity. The caller must not store the result of a refused call.
func (m *layout) step(word, elapsed, cost uint64) (delta, deficit uint64, granted bool) {
	delta, deficit = m.unpack(word)
	if elapsed > delta {
		deficit -= min(deficit, elapsed-delta)
		delta = elapsed
	}
	deficit += cost
	return delta, deficit, deficit <= m.capacity
}

// take decides a call of the given cost at t, and returns the word that it stored or read. It
// starts over when another goroutine changes the word first, and after it has sealed the word. A
// sealed word can still refuse a call.
func (c *cell) take(m *layout, t, cost uint64) (tb.Decision, uint64, verdict) {
	elapsed := m.since(c.base, m.positionOf(m.supply.unitsBy(t))) // positionAt, inlined by hand
	for {
		word := c.word.Load()
		if word == evicted {
			return tb.Decision{}, word, gone
		}
		delta, deficit, granted := m.step(word, elapsed, cost)
		if !granted {
			return m.refusal(c.base, t, delta, deficit, cost), word, decided
		}
		if isSealed(word) {
			return tb.Decision{}, word, mustMove
		}
		if !m.fits(delta) {
			c.word.CompareAndSwap(word, word|sealBit)
			continue
		}
		if next := m.pack(delta, deficit); c.word.CompareAndSwap(word, next) {
			return m.grant(deficit), next, decided
		}
	}
}

// giveBack undoes a grant of the given cost that stored the given word. It gives back the cost
// less the units that were supplied from that grant to the bucket's latest grant, but not less
// than 0. Without the undone grant, the bucket may have been full and have lost that supply. So
// the bucket is never fuller than without the grant. DESIGN.md §3 has the proof. A sealed cell
// gets nothing back.
func (c *cell) giveBack(m *layout, stored, cost uint64) {
	then, _ := m.unpack(stored)
	for {
		word := c.word.Load()
		if isSealed(word) {
			return
		}
		delta, deficit := m.unpack(word)
		deficit -= cost - min(cost, delta-then)
		if c.word.CompareAndSwap(word, m.pack(delta, deficit)) {
			return
		}
	}
}

// peek returns what take would decide on the given word.
func (c *cell) peek(m *layout, word, t, cost uint64) tb.Decision {
	delta, deficit, granted := m.step(word, m.since(c.base, m.positionAt(t)), cost)
	if !granted {
		return m.refusal(c.base, t, delta, deficit, cost)
	}
	return m.grant(deficit)
}

// level returns how full the bucket is with the given word.
func (c *cell) level(m *layout, word, t uint64) tb.Level {
	delta, deficit, _ := m.step(word, m.since(c.base, m.positionAt(t)), 0)
	units := m.capacity - deficit
	l := tb.Level{Tokens: float64(units) / float64(m.scale)}
	if deficit > 0 {
		l.NextToken = m.waitFor(c.base, delta+m.scale-units%m.scale, t)
		l.Full = m.waitFor(c.base, delta+deficit, t)
	}
	return l
}

// successor returns the base and the word of a cell to replace the sealed cell c, and the
// decision of the call that is charged to it. The replacement grants that call: a move and a
// grant are one step. DESIGN.md §8 has the reason.
func (c *cell) successor(m *layout, t, cost uint64) (base, word uint64, d tb.Decision) {
	p := m.positionAt(t)
	elapsed := m.since(c.base, p)
	delta, deficit, _ := m.step(c.word.Load(), elapsed, cost)
	if p.blocks < c.base || delta != elapsed { // c's own time is later
		p = m.positionOf(m.unitsAfter(c.base, delta))
	}
	return p.blocks, m.pack(p.rest, deficit), m.grant(deficit)
}

// grant returns the decision of a granted call that left the given deficit.
func (m *layout) grant(deficit uint64) tb.Decision {
	return tb.Decision{Allowed: true, Remaining: m.tokensIn(m.capacity - deficit)}
}

// refusal returns the decision of a call that would have left the given deficit, which is
// above the capacity.
func (m *layout) refusal(base, t, delta, deficit, cost uint64) tb.Decision {
	d := tb.Decision{RetryAfter: tb.Never, Remaining: m.tokensIn(m.capacity + cost - deficit)}
	if cost <= m.capacity {
		d.RetryAfter = m.waitFor(base, delta+deficit-m.capacity, t)
	}
	return d
}

// fullDecision returns the decision of a full bucket on a call of the given cost.
func (m *layout) fullDecision(cost uint64) tb.Decision {
	if cost > m.capacity {
		return tb.Decision{RetryAfter: tb.Never, Remaining: m.tokensIn(m.capacity)}
	}
	return m.grant(cost)
}
