package cas

import (
	"math"
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// grace is the time that a SetLimit may take from its clock reading to the change.
const grace = uint64(time.Minute)

// balance is the state of a bucket at its own time, as the supply clock shows it. The deficit is the
// capacity and one unit if the bucket is in debt: then the time is the unit before its slot.
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

// baseOf returns the base of a cell for b: the bucket's own time. In debt that time is a slot, which
// may lie far in the future. Then the base is at t, if the cell can hold b.
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

// inherit returns the balance that a bucket with balance b has in m, if m takes its place from old
// at instant t. The bucket keeps its tokens, but not more than its new capacity, and its debt.
func (m *layout) inherit(old *layout, b balance, t uint64) balance {
	tokens, since := old.tokensAt(b, max(t, old.begin)) // what it has in old, it has since then
	return m.balanceWith(tokens, m.supply.at(max(since, m.begin)))
}

// tokensAt returns the tokens of a bucket at instant t, in millionths and negative in debt. since
// is the instant at which it has them. That is t, unless the bucket's own time is later and it is
// not in debt. Then since is the last instant of that time.
func (m *layout) tokensAt(b balance, t uint64) (micros int64, since uint64) {
	now := m.supply.at(t)
	missing := min(b.missing(now), m.capacity+deepestDebt*m.scale)
	if b.deficit > m.capacity || !now.before(b.time) {
		return int64(m.micros(m.capacity)) - int64(m.micros(missing)), t
	}
	next, ok := m.supply.timeOf(b.time.plus(1)) // it is ahead of t
	if !ok {
		next = math.MaxUint64
	}
	return int64(m.micros(m.capacity - b.deficit)), next - 1
}

// balanceWith returns the balance of a bucket that has a number of tokens at now, in millionths. A
// part of a unit is lost.
func (m *layout) balanceWith(micros int64, now wide) balance {
	perUnit := int64(maxScale / m.scale)
	if micros < 0 {
		micros -= perUnit - 1
	}
	return m.balanceOfUnits(micros/perUnit, now)
}

// balanceOfUnits returns the balance of a bucket that has a number of units at now, negative in debt.
func (m *layout) balanceOfUnits(units int64, now wide) balance {
	if units >= 0 {
		return balance{now, m.capacity - min(m.capacity, uint64(units))}
	}
	return balance{now.plus(uint64(-units) - 1), m.capacity + 1}
}

// supplyFrom returns S(t) for a bucket that has had what the eras before have supplied. At the
// beginning of the era that is less than S(t) by the fraction of a unit that is carried.
func (m *layout) supplyFrom(t uint64) wide {
	if t <= m.begin {
		return wide{}
	}
	return m.supply.at(t)
}

// change returns the layout that takes the place of m at instant t with another limit, and begins a
// new era. owed is the deepest debt of any bucket: see limits.owe.
func (m *layout) change(l tb.Limit, t, owed uint64) *layout {
	n := newLayout(l)
	n.end, n.begin = m.end, t
	n.owner = m.owner + 1<<tierBits
	n.supply.from = t - min(t, m.carried(&n, t))
	n.history = m.history.after(m, &n, owed)
	return &n
}

// carried returns the nanoseconds in which n supplies the fraction of a unit that m has supplied
// at t beyond whole units, rounded down. With this head start no fraction is lost however often
// the limit changes.
func (m *layout) carried(n *layout, t uint64) uint64 {
	units := func(m *layout) (num, per *big.Int) {
		num = big.NewInt(m.limit.Tokens)
		return num.Mul(num, new(big.Int).SetUint64(m.scale)), big.NewInt(int64(m.limit.Per))
	}
	old, per := units(m)
	fraction := new(big.Int).SetUint64(t - min(t, m.supply.from))
	fraction.Mul(fraction, old).Mod(fraction, per) // over per, in units of m
	rate, newPer := units(n)
	fraction.Mul(fraction, new(big.Int).SetUint64(n.scale)).Mul(fraction, newPer)
	per.Mul(per, new(big.Int).SetUint64(m.scale)).Mul(per, rate)
	return fraction.Quo(fraction, per).Uint64()
}
