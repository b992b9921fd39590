package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// cell is the state of a bucket at one base, under one limit. The package documentation explains the
// word. Base and owner are immutable.
type cell struct {
	word  atomic.Uint64
	base  uint64 // in blocks: see position
	owner uint64 // of the layout that the base and the word are of
}

// init sets up a cell of m that no other goroutine has yet.
func (c *cell) init(m *layout, base, word uint64) *cell {
	c.base, c.owner = base, m.owner
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

// take is the fast path of spend, and decides as spend does. It returns the decision of a call of
// the given cost at t, and the words before and after a grant. It starts over when another
// goroutine changes the word first.
//
// ok is false if take leaves the call to spend: m is not the layout of the cell, the word is sealed,
// the delta of a grant does not fit, or the cost is above the capacity.
func (c *cell) take(m *layout, t, cost uint64) (d tb.Decision, before, after uint64, ok bool) {
	if !m.owns(c) {
		return tb.Decision{}, 0, 0, false
	}
	hi, lo := m.supply.unitsBy(t)
	elapsed := m.beyondBase(c.base, hi, lo)
	for {
		word := c.word.Load()
		delta, deficit, granted := m.step(word, elapsed, cost)
		if !granted {
			if isSealed(word) || cost > m.capacity {
				return tb.Decision{}, word, word, false
			}
			// refusal, inlined by hand
			d.RetryAfter = m.waitFor(c.base, delta+deficit-m.capacity, t)
			d.Remaining = m.tokensIn(m.capacity - min(m.capacity, deficit-cost))
			return d, word, word, true
		}
		if isSealed(word) || !m.fits(delta) {
			return tb.Decision{}, word, word, false
		}
		if next := m.pack(delta, deficit); c.word.CompareAndSwap(word, next) {
			return m.grant(deficit), word, next, true
		}
	}
}

// peek returns what take would decide. ok is false if the word is sealed, or m is not the layout of
// the cell.
func (c *cell) peek(m *layout, t, cost uint64) (d tb.Decision, ok bool) {
	word := c.word.Load()
	if isSealed(word) || !m.owns(c) {
		return tb.Decision{}, false
	}
	delta, deficit, granted := m.step(word, m.elapsed(c.base, t), cost)
	if !granted {
		return m.refusal(c.base, t, delta, deficit, cost), true
	}
	return m.grant(deficit), true
}

// level returns how full the bucket of a cell with the given base and word is.
func (m *layout) level(base, word, t uint64) tb.Level {
	delta, deficit, _ := m.step(word, m.elapsed(base, t), 0)
	if deficit > m.capacity { // in debt until the next unit
		slot := delta + 1
		debt := min(m.until(base, slot, m.positionAt(t)), mostDebt)
		return tb.Level{
			Tokens:    -float64(debt) / float64(m.scale),
			NextToken: m.waitFor(base, slot+m.scale, t),
			Full:      m.waitFor(base, slot+m.capacity, t),
		}
	}
	units := m.capacity - deficit
	l := tb.Level{Tokens: float64(units) / float64(m.scale)}
	if deficit > 0 {
		l.NextToken = m.waitFor(base, delta+m.scale-units%m.scale, t)
		l.Full = m.waitFor(base, delta+deficit, t)
	}
	return l
}

// grant returns the decision of a granted call that left the given deficit, which is within the
// capacity.
func (m *layout) grant(deficit uint64) tb.Decision {
	return tb.Decision{Allowed: true, Remaining: m.tokensIn(m.capacity - deficit)}
}

// refusal returns the decision of a call that would have left the given deficit, which is
// above the capacity.
func (m *layout) refusal(base, t, delta, deficit, cost uint64) tb.Decision {
	left := m.capacity - min(m.capacity, deficit-cost)
	d := tb.Decision{RetryAfter: tb.Never, Remaining: m.tokensIn(left)}
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
