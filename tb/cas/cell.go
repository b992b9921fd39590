package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// blockBits is the width of a block, in which bases are counted. S is below 2⁸⁴, so a number of
// blocks has 63 bits. A block is at most 2⁻¹¹ of the units that a delta holds.
const blockBits = 21

// ownedBit is set in the base of a cell that has an owner other than 0.
const ownedBit = uint64(1) << 63

// cell is the state of a bucket at one base, under one limit. The owner of its layout is its tag,
// which it has only if that is not 0. Base and owner are immutable.
type cell struct {
	word atomic.Uint64
	base uint64 // in blocks, and ownedBit
}

// content is what a new cell has.
type content struct{ owner, base, word uint64 }

// newCell returns a cell without a key.
func newCell(x content) *cell {
	c := lru.New[cell](x.owner)
	c.init(x)
	return c
}

// init sets up a cell that no other goroutine has yet. Its tag is the owner.
func (c *cell) init(x content) {
	c.base = x.base
	if x.owner != 0 {
		c.base |= ownedBit
	}
	c.word.Store(x.word)
}

// isOwned reports whether the owner of c is not 0. Only then it has a tag.
func (c *cell) isOwned() bool { return int64(c.base) < 0 }

// owner returns the owner of the layout of c.
func (c *cell) owner() uint64 {
	if c.isOwned() {
		return lru.TagOf(c)
	}
	return 0
}

// cellOf returns the first cell of a bucket, with the balance b that a call at t has left.
func (m *layout) cellOf(b balance, t uint64) content {
	if b.until > 0 {
		return m.heldCell(b)
	}
	base := m.baseOf(b, t)
	return content{m.owner, base, m.wordOf(base, b)}
}

// seal seals the word, unless it is sealed.
func (c *cell) seal() {
	for word := c.word.Load(); !isSealed(word); word = c.word.Load() {
		c.word.CompareAndSwap(word, word|sealBit)
	}
}

// heldBit is set in the owner of the cell of a held bucket, which is of no layout: DESIGN.md §10.
// The tier is below it.
const heldBit = uint64(1) << 63

// isHeld reports whether c is the cell of a bucket that was held when it was made.
func (c *cell) isHeld() bool { return c.owner()&heldBit != 0 }

// heldUntil returns the instant at which the hold of c ends, and the debt then, in millionths of a
// token.
func (c *cell) heldUntil(word uint64) (until uint64, micros int64) {
	return c.base<<1 | word&1, int64(word &^ sealBit >> 1)
}

// tier returns the tier of the layout of c.
func (c *cell) tier() int { return tierOf(c.owner()) }

// owns reports whether c has this layout.
func (m *layout) owns(c *cell) bool {
	if c.isOwned() { // owner, inlined by hand
		return m.owner == lru.TagOf(c)
	}
	return m.owner == 0
}

// startOf returns the supply at a base, and blockOf the last base that is not after x.
func startOf(base uint64) wide {
	return wide{base &^ ownedBit >> (64 - blockBits), base << blockBits}
}

func blockOf(x wide) uint64 { return x.hi<<(64-blockBits) | x.lo>>blockBits }

// receipt is the cell that a grant charged, its layout, and its words before and after the grant.
// Cancel needs them. before is a word of that cell too, if the grant put the bucket into debt.
type receipt struct {
	cell          *cell
	layout        *layout
	before, after uint64
}

// step is the token bucket. It returns the delta and the deficit that a call of the given cost
// would leave at elapsed units after the base. The caller must not store the result of a refused
// call.
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
// ok is false if take leaves the call to spend: there is no cell, m is not its layout, the word is
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

// deepestDebt is the deepest debt in tokens that a change of the limit or a Snapshot keeps. It is
// more than maxDebt, because at a late reading a debt is deeper.
const deepestDebt = 1 << 32

// mostDebt is the most units of debt that a level reports. At a late reading the debt is higher.
const mostDebt = 1 << 61

// balance is the state of a bucket at its own time, as the supply clock shows it. The deficit is
// the capacity and one unit if the bucket is in debt: then the time is the unit before its slot.
// The zero balance is the one of a new bucket: it has been full since S was 0.
type balance struct {
	time    wide
	deficit uint64
	until   uint64 // the instant at which its hold ends, at its time or before; 0 if it is not held
}

func (m *layout) balanceOf(base, word uint64) balance {
	delta, deficit := m.unpack(word)
	return balance{time: startOf(base).plus(delta), deficit: deficit}
}

// balanceOfUnits returns the balance of a bucket that has a number of units at now, negative in
// debt.
func (m *layout) balanceOfUnits(units int64, now wide) balance {
	if units >= 0 {
		return balance{time: now, deficit: m.capacity - min(m.capacity, uint64(units))}
	}
	return balance{time: now.plus(uint64(-units) - 1), deficit: m.capacity + 1}
}

// heldCell returns a cell for b, which is held.
func (m *layout) heldCell(b balance) content {
	word := b.until & 1
	if b.deficit > m.capacity {
		word |= m.micros(b.slot(m).after(m.supply.at(b.until))) << 1
	}
	return content{heldBit | m.owner&(1<<tierBits-1), b.until >> 1, word}
}

// heldTo returns b, held until an instant, with the debt that a cell has behind a hold. If the own
// time of b is a later reading, the hold ends at its last instant, because b has had the supply
// until then.
func (m *layout) heldTo(b balance, until uint64) balance {
	end := m.supply.at(until)
	switch {
	case b.deficit > m.capacity && end.before(b.slot(m)):
		debt := min(b.slot(m).after(end), deepestDebt*m.scale)
		return balance{end.plus(debt).minus(1), m.capacity + 1, until}
	case b.deficit <= m.capacity && end.before(b.time):
		until = min(m.supply.timeOf(b.time.plus(1))-1, m.end)
		end = m.supply.at(until)
	}
	return balance{end, m.capacity, until}
}

// refilled returns the balance at now, or b if its own time is later.
func (b balance) refilled(now wide) balance {
	if b.time.before(now) {
		b.deficit -= min(b.deficit, now.after(b.time))
		b.time = now
	}
	return b
}

// slot returns the supply that pays for a deficit above the capacity.
func (b balance) slot(m *layout) wide { return b.time.plus(b.deficit - m.capacity) }

// debtFrom returns the instant from which the debt of a bucket counts for a call at t. The time of
// a hold is none.
func (b balance) debtFrom(t uint64) uint64 { return max(t, b.until) }

// missing returns the units that the bucket lacks at now to be full.
func (b balance) missing(now wide) uint64 { return b.time.plus(b.deficit).after(now) }

// holds reports whether a cell with the given base can hold b.
func (m *layout) holds(base uint64, b balance) bool {
	start := startOf(base)
	return !b.time.before(start) && m.fits(b.time.after(start))
}

// wordOf returns the word for b in a cell with the given base, which can hold it.
func (m *layout) wordOf(base uint64, b balance) uint64 {
	return m.pack(b.time.after(startOf(base)), b.deficit)
}

// baseOf returns the base of a cell for b: the bucket's own time. In debt that time is a slot,
// which may lie far in the future. Then the base is at t, if the cell can hold b.
func (m *layout) baseOf(b balance, t uint64) uint64 {
	if b.deficit > m.capacity {
		if base := blockOf(m.supply.at(t)); m.holds(base, b) {
			return base
		}
	}
	return blockOf(b.time)
}

// successor returns the base of a cell for next, and its words for before and next. There is none
// for before if next is not in debt, or if no cell can hold both.
func (m *layout) successor(before, next balance, t uint64) (base uint64, r receipt) {
	base = m.baseOf(next, t)
	if next.deficit > m.capacity {
		if low := min(base, blockOf(before.time)); m.holds(low, next) {
			return low, receipt{before: m.wordOf(low, before), after: m.wordOf(low, next)}
		}
	}
	return base, receipt{after: m.wordOf(base, next)}
}

// refund returns the balance of a bucket that gets units back at now. They first pay its debt,
// which moves its slot towards now. The rest is put into the bucket.
func (m *layout) refund(b balance, units uint64, now wide) balance {
	if b.deficit <= m.capacity {
		return balance{b.time, b.deficit - min(b.deficit, units), b.until}
	}
	slot := b.slot(m)
	debt := slot.after(now)
	slot = slot.minus(min(units, debt))
	if units >= debt {
		return balance{slot, m.capacity - min(m.capacity, units-debt), b.until}
	}
	return balance{slot.minus(1), b.deficit, b.until}
}

// fullAt returns the instant at which a bucket will be full.
func (m *layout) fullAt(b balance) uint64 { return m.supply.timeOf(b.time.plus(b.deficit)) }

// level returns how full a bucket with balance b is at t for a call that keeps a number of units.
func (m *layout) level(b balance, t, keep uint64) tb.Level {
	now := m.supply.at(t)
	b = b.refilled(now)
	units := m.capacity - min(m.capacity, b.deficit)
	usable := units - min(units, keep)
	l := tb.Level{Tokens: float64(usable) / float64(m.scale)}
	if b.deficit == 0 {
		return l
	}
	full := b.time.plus(b.deficit)
	l.NextToken, l.Full = tb.Never, m.waitFor(full, t)
	if next := keep + (usable/m.scale+1)*m.scale; next <= m.capacity {
		l.NextToken = m.waitFor(full.minus(m.capacity-next), t)
	}
	if b.deficit > m.capacity && keep == 0 { // in debt until the next unit
		debt := b.slot(m).after(m.supply.at(b.debtFrom(t)))
		l.Tokens = -float64(min(debt, mostDebt)) / float64(m.scale)
	}
	return l
}
