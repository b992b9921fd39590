package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// blockBits is the width of a block, in which bases are counted. S is below 2⁸⁴, so a number of
// blocks fits one word. A block is at most 2⁻¹² of the units that a delta holds.
const blockBits = 20

// cell is the state of a bucket at one base, under one limit. The package documentation explains
// the word. Base and owner are immutable.
type cell struct {
	word  atomic.Uint64
	base  uint64 // in blocks
	owner uint64 // of the layout that the base and the word are of
}

// init sets up a cell of m that no other goroutine has yet.
func (c *cell) init(m *layout, base, word uint64) *cell {
	c.base, c.owner = base, m.owner
	c.word.Store(word)
	return c
}

// first sets up c as the first cell of a bucket, with the balance b that a call at t has left. It
// returns the receipt of that call.
func (c *cell) first(m *layout, b balance, t uint64) receipt {
	base := m.baseOf(b, t)
	word := m.wordOf(base, b)
	c.init(m, base, word)
	return receipt{c, evicted, word}
}

// seal seals the word, unless it is sealed.
func (c *cell) seal() {
	for word := c.word.Load(); !isSealed(word); word = c.word.Load() {
		c.word.CompareAndSwap(word, word|sealBit)
	}
}

// startOf returns the supply at a base, and blockOf the last base that is not after x.
func startOf(base uint64) wide { return wide{base >> (64 - blockBits), base << blockBits} }
func blockOf(x wide) uint64    { return x.hi<<(64-blockBits) | x.lo>>blockBits }

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
// ok is false if take leaves the call to spend: m is not the layout of the cell, the word is
// sealed, the delta of a grant does not fit, or the cost is above the capacity.
func (c *cell) take(m *layout, t, cost uint64) (d tb.Decision, before, after uint64, ok bool) {
	if !m.owns(c) {
		return tb.Decision{}, 0, 0, false
	}
	start := startOf(c.base)
	elapsed := m.supply.at(t).after(start)
	for {
		word := c.word.Load()
		delta, deficit, granted := m.step(word, elapsed, cost)
		if !granted {
			if isSealed(word) || cost > m.capacity {
				return tb.Decision{}, word, word, false
			}
			// refusal, inlined by hand
			d.RetryAfter = m.waitFor(start.plus(delta+deficit-m.capacity), t)
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
	b := m.balanceOf(c.base, word).refilled(m.supply.at(t))
	b.deficit += cost
	if b.deficit > m.capacity {
		return m.refusal(b, t, cost), true
	}
	return m.grant(b.deficit), true
}

// grant returns the decision of a granted call that left the given deficit, which is within the
// capacity.
func (m *layout) grant(deficit uint64) tb.Decision {
	return tb.Decision{Allowed: true, Remaining: m.tokensIn(m.capacity - deficit)}
}

// refusal returns the decision of a call that would have left b, whose deficit is above the
// capacity.
func (m *layout) refusal(b balance, t, cost uint64) tb.Decision {
	left := m.capacity - min(m.capacity, b.deficit-cost)
	d := tb.Decision{RetryAfter: tb.Never, Remaining: m.tokensIn(left)}
	if cost <= m.capacity {
		d.RetryAfter = m.waitFor(b.slot(m), t)
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
