package cas

import (
	"fmt"
	"math"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// reachStep is the step in which the highest base is recorded, so that few cells write it: at most
// one every 60 milliseconds.
const reachStep = 1 << 26

// grace is the time that a SetLimit may take from its clock reading to the change.
const grace = uint64(time.Minute)

// gapBits is the width of a delta in blocks after the first change of a limit. The fewer blocks a
// delta has, the fewer bases are between two eras.
const gapBits = 16

// horizon is the time that a change of the limit leaves to its era. A bucket that is further
// ahead of the change keeps so much.
const horizon = 100 * 365 * 24 * uint64(time.Hour)

// balance is the state of a bucket at its own time: the deficit, which is the capacity and one unit
// if the bucket is in debt.
type balance struct {
	position
	deficit uint64
}

func (m *layout) balanceOf(base, word uint64) balance {
	delta, deficit := m.unpack(word)
	return balance{m.positionOf(m.unitsAfter(base, delta)), deficit}
}

// cellOf returns the base and the word of a cell with the given balance. The base is the bucket's
// own time. In debt that time is a slot, which may lie far in the future. Then the base is at t, if
// the delta to the slot fits.
func (m *layout) cellOf(b balance, t uint64) (base, word uint64) {
	if b.deficit > m.capacity {
		if base := m.positionAt(t).blocks; base < b.blocks {
			if delta := m.since(base, b.position); m.fits(delta) {
				return base, m.pack(delta, b.deficit)
			}
		}
	}
	return b.blocks, m.pack(b.rest, b.deficit)
}

// inherit returns the balance that a bucket with balance b has in m, if m takes its place from old
// at instant t. The bucket keeps its tokens, but not more than its new capacity, and its debt.
func (m *layout) inherit(old *layout, b balance, t uint64) balance {
	tokens, since := old.tokensAt(b, max(t, old.begin)) // what it has in old, it has since then
	return m.balanceWith(tokens, m.positionAt(max(since, m.begin)))
}

// tokensAt returns the tokens of a bucket at instant t, in millionths and negative in debt. since
// is the instant at which it has them. That is t, unless the bucket's own time is later and it is
// not in debt. Then since is the last instant of that time, at most the horizon after t.
func (m *layout) tokensAt(b balance, t uint64) (micros int64, since uint64) {
	now := m.positionAt(t)
	missing := min(m.until(b.blocks, b.rest+b.deficit, now), m.capacity+deepestDebt*m.scale)
	if b.deficit > m.capacity || !now.before(b.position) {
		return int64(m.micros(m.capacity)) - int64(m.micros(missing)), t
	}
	next, ok := m.supply.timeOf(m.unitsAfter(b.blocks, b.rest+1)) // it is ahead of t
	if !ok {
		next = math.MaxUint64
	}
	return int64(m.micros(m.capacity - b.deficit)), min(next-1, plusHorizon(t))
}

// balanceWith returns the balance of a bucket that has a number of tokens at p, in millionths. A
// part of a unit is lost.
func (m *layout) balanceWith(micros int64, p position) balance {
	perUnit := int64(maxScale / m.scale)
	if micros < 0 {
		micros -= perUnit - 1
	}
	return m.balanceOfUnits(micros/perUnit, p)
}

// balanceOfUnits returns the balance of a bucket that has a number of units at p, negative in debt.
func (m *layout) balanceOfUnits(units int64, p position) balance {
	if units >= 0 {
		return balance{p, m.capacity - min(m.capacity, uint64(units))}
	}
	return balance{m.positionOf(m.unitsAfter(p.blocks, p.rest+uint64(-units)-1)), m.capacity + 1}
}

// positionFrom returns S(t) for a bucket that has had what the eras before have supplied. At the
// beginning of the era that is less than S(t) by the fraction of a unit that is carried.
func (m *layout) positionFrom(t uint64) position {
	if t <= m.begin {
		return position{blocks: m.firstBase}
	}
	return m.positionAt(t)
}

// before reports whether p is before q.
func (p position) before(q position) bool {
	return p.blocks < q.blocks || p.blocks == q.blocks && p.rest < q.rest
}

// change returns the layout that takes the place of m at instant t with another limit, and begins a
// new era. All bases of m lie so far before its first base that the difference refills every bucket
// and exceeds every delta, whatever the word of m means in the new layout. So the fast path takes
// no cell of m for one of the new era. No call has brought a reading that is later than the highest
// base. While the era ends, calls still bring readings to m: if one is later than t by more than
// grace, its bucket may have a wrong time. owed is the deepest debt of any bucket: see limits.owe.
//
// It returns an error if there would be no bases for the time of the horizon.
func (m *layout) change(l tb.Limit, t, owed uint64) (*layout, error) {
	n := newLayout(l)
	n.end, n.tiered, n.begin = m.end, m.tiered, t
	if m.tiered {
		n.blockBits += tierBits
	}
	deltaBits := 63 - n.deficitBits
	n.setBlockBits(max(n.blockBits, deltaBits-gapBits))
	if err := n.checkBlock(); err != nil {
		return nil, err
	}
	gap := uint64(2) << (deltaBits - n.blockBits)
	highest := max(m.positionAt(t+grace).blocks, m.highest.Load())
	n.firstBase = highest + gap
	n.baseSpan = m.baseSpan - (n.firstBase - m.firstBase)
	n.highest = new(atomic.Uint64)
	n.supply.from = t - min(t, m.carried(&n, t))
	n.supply.hi, n.supply.lo = n.unitsAfter(n.firstBase, 0)
	n.setLastInstant()
	over := n.firstBase < highest || n.baseSpan > m.baseSpan
	if over || n.lastInstant < min(n.end, plusHorizon(t)) {
		return nil, &tb.ConfigError{
			Field: "limit", Value: fmt.Sprintf("%+v", l),
			Range: "the limit as it is: it has changed too often",
		}
	}
	n.history = m.history.after(m, &n, owed)
	return &n, nil
}

// setLastInstant sets the instant after which the bases of m end, the deepest debt included.
func (m *layout) setLastInstant() {
	last := m.baseSpan - min(m.baseSpan, deepestDebt*m.scale>>m.blockBits+2)
	t, ok := m.supply.timeOf(m.unitsAfter(m.firstBase+last, 0))
	if m.lastInstant = t; !ok {
		m.lastInstant = math.MaxUint64
	}
}

func plusHorizon(t uint64) uint64 { return t + min(horizon, math.MaxUint64-t) }

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

// reach records that a cell has the given base.
func (m *layout) reach(base uint64) {
	for {
		highest := m.highest.Load()
		if base <= highest || m.highest.CompareAndSwap(highest, base|(m.reachStep()-1)) {
			return
		}
	}
}

// reachStep returns reachStep in the blocks of m.
func (m *layout) reachStep() uint64 {
	if m.tiered {
		return reachStep >> tierBits
	}
	return reachStep
}
