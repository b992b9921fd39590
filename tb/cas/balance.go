package cas

import (
	"github.com/seed-181794aa/ratelimit/tb"
)

// deepestDebt is the deepest debt in tokens that a change of the limit or a Snapshot keeps. It is
// more than maxDebt, because at a late reading a debt is deeper.
const deepestDebt = 1 << 32

// mostDebt is the most units of debt that a level reports. At a late reading the debt is higher by
// the supply since.
const mostDebt = 1 << 61

// balance is the state of a bucket at its own time, as the supply clock shows it. The deficit is
// the capacity and one unit if the bucket is in debt: then the time is the unit before its slot.
type balance struct {
	time    wide
	deficit uint64
}

func (m *layout) balanceOf(base, word uint64) balance {
	delta, deficit := m.unpack(word)
	return balance{startOf(base).plus(delta), deficit}
}

// refilled returns the balance at now, or b if its own time is later.
func (b balance) refilled(now wide) balance {
	if b.time.before(now) {
		return balance{now, b.deficit - min(b.deficit, now.after(b.time))}
	}
	return b
}

// slot returns the supply that pays for a deficit above the capacity.
func (b balance) slot(m *layout) wide { return b.time.plus(b.deficit - m.capacity) }

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

// level returns how full a bucket with balance b is at t.
func (m *layout) level(b balance, t uint64) tb.Level {
	now := m.supply.at(t)
	b = b.refilled(now)
	if b.deficit > m.capacity { // in debt until the next unit
		slot := b.slot(m)
		return tb.Level{
			Tokens:    -float64(min(slot.after(now), mostDebt)) / float64(m.scale),
			NextToken: m.waitFor(slot.plus(m.scale), t),
			Full:      m.waitFor(slot.plus(m.capacity), t),
		}
	}
	units := m.capacity - b.deficit
	l := tb.Level{Tokens: float64(units) / float64(m.scale)}
	if b.deficit > 0 {
		l.NextToken = m.waitFor(b.time.plus(m.scale-units%m.scale), t)
		l.Full = m.waitFor(b.time.plus(b.deficit), t)
	}
	return l
}

// balanceOfUnits returns the balance of a bucket that has a number of units at now, negative in
// debt.
func (m *layout) balanceOfUnits(units int64, now wide) balance {
	if units >= 0 {
		return balance{now, m.capacity - min(m.capacity, uint64(units))}
	}
	return balance{now.plus(uint64(-units) - 1), m.capacity + 1}
}
