package cas

import (
	"math"
	"math/big"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// pastEras is the number of ended eras from which on setLimit forgets the eras whose buckets must
// all be full.
const pastEras = 64

// reachStep is the step in which the highest base is recorded, so that few cells write it: at most
// one every 60 milliseconds.
const reachStep = 1 << 26

// horizon is the time that a change of the capacity leaves to its era. A bucket that is further
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

// cellOf returns the base and the word of a cell with the given balance. The base is at t, or at
// the bucket's own time: whichever is earlier if the bucket is in debt, because then its own time
// is a slot in the future, and the own time otherwise.
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

// successor returns the base and the word of a cell that replaces one with the given base. The
// replaced cell would have the given delta, which is at least elapsed, and the given deficit, after
// a call at t, which is elapsed units after its base. A clamped elapsed does not matter.
func (m *layout) successor(base, elapsed, delta, deficit, t uint64) (uint64, uint64) {
	own := m.positionAt(t)
	if own.blocks < base {
		own = position{blocks: base}
	}
	own = m.positionOf(m.unitsAfter(own.blocks, own.rest+delta-elapsed))
	return m.cellOf(balance{own, deficit}, t)
}

// inherit returns the balance that a bucket with balance b has in m, if m takes its place from old
// at instant t. The bucket keeps its tokens, but not more than its new capacity, and its debt, but
// not more than maxDebt. A fraction of a unit is lost.
func (m *layout) inherit(old *layout, b balance, t uint64) balance {
	now := old.positionAt(t)
	if b.deficit > old.capacity && now.before(b.position, 1) {
		debt := min(old.since(now.blocks, b.position)-now.rest+1, maxDebt*old.scale)
		hi, lo := bits.Mul64(debt, m.scale)
		lo, carry := bits.Add64(lo, old.scale-1, 0)
		debt, _ = bits.Div64(hi+carry, lo, old.scale)
		p := m.positionFrom(t)
		p = m.positionOf(m.unitsAfter(p.blocks, p.rest+min(debt, maxDebt)-1))
		return balance{p, m.capacity + 1}
	}
	if !now.before(b.position, 0) {
		b.deficit -= min(b.deficit, old.since(b.blocks, now)-b.rest)
	} else { // a reading from the future
		at, ok := old.supply.timeOf(old.unitsAfter(b.blocks, b.rest))
		if !ok {
			at = math.MaxUint64
		}
		t = max(t, min(at, plusHorizon(t)))
	}
	tokens := (old.capacity - b.deficit) * m.scale / old.scale
	return balance{m.positionFrom(t), m.capacity - min(m.capacity, tokens)}
}

// positionFrom returns S(t), and the first position of the era if t is not after the instant at
// which the era begins. If the rate has changed since, the supply clock no longer has it.
func (m *layout) positionFrom(t uint64) position {
	if t <= m.begin {
		return position{blocks: m.firstBase}
	}
	return m.positionAt(t)
}

// before reports whether p is before q plus a number of units.
func (p position) before(q position, units uint64) bool {
	return p.blocks < q.blocks || p.blocks == q.blocks && p.rest < q.rest+units
}

// change returns the layout that takes the place of m at instant t with another limit.
func (m *layout) change(l tb.Limit, t uint64) (*layout, error) {
	n := newLayout(l)
	n.end, n.tiered = m.end, m.tiered
	if m.tiered {
		n.blockBits += tierBits
	}
	if n.scale != m.scale || n.capacity != m.capacity || n.blockBits > m.blockBits {
		return m.newEra(&n, t)
	}
	n.setBlockBits(m.blockBits)
	n.begin, n.past, n.highest = m.begin, m.past, m.highest
	n.firstBase, n.lastBase = m.firstBase, m.lastBase
	n.supply.from = t - min(t, m.carried(&n, t))
	n.supply.hi, n.supply.lo = m.supply.unitsBy(t)
	n.setLastInstant()
	return &n, nil
}

// newEra makes n begin a new era at t. All bases of m lie so far before the first base of n that
// for n the difference refills every bucket and exceeds every delta, whatever the word of m means
// in n. So the fast path takes no cell of m for one of n. No call has brought a reading that is
// later than the highest base. If a call brings one to m while the era ends, its bucket may have a
// wrong time.
//
// It returns an error if n would have no bases for the time of the horizon.
func (m *layout) newEra(n *layout, t uint64) (*layout, error) {
	n.setBlockBits(n.blockBits)
	if m.tiered {
		if err := n.checkBlock(); err != nil {
			return nil, err
		}
	}
	gap := uint64(2) << (63 - n.deficitBits - min(n.blockBits, 63-n.deficitBits))
	highest := max(m.positionAt(t).blocks, m.highest.Load())
	n.firstBase = highest + 2*m.reachStep() + gap
	n.lastBase = m.lastBase - (n.firstBase - m.firstBase)
	n.begin, n.highest = t, new(atomic.Uint64)
	n.supply.from = t - min(t, m.carried(n, t))
	n.supply.hi, n.supply.lo = n.unitsAfter(n.firstBase, 0)
	n.setLastInstant()
	if n.lastBase > m.lastBase || n.lastInstant < min(n.end, plusHorizon(t)) {
		return nil, &tb.ConfigError{
			Field: "Capacity", Value: n.limit.Capacity,
			Range: "the capacity as it is: it has changed too often",
		}
	}
	n.past = append(m.past[:len(m.past):len(m.past)], era{m, t})
	for len(n.past) > pastEras && n.past[0].isOver(n, t) {
		n.past = n.past[1:]
	}
	return n, nil
}

// setLastInstant sets the instant after which the bases of m end, the deepest debt included.
func (m *layout) setLastInstant() {
	last := m.lastBase - min(m.lastBase, maxDebt>>m.blockBits+2)
	t, ok := m.supply.timeOf(m.unitsAfter(m.firstBase+last, 0))
	if m.lastInstant = t; !ok {
		m.lastInstant = math.MaxUint64
	}
}

func plusHorizon(t uint64) uint64 { return t + min(horizon, math.MaxUint64-t) }

// isOver reports whether all buckets of the era are full at t, the deepest debt included.
func (e *era) isOver(n *layout, t uint64) bool {
	old := e.layout
	p := old.positionAt(e.end)
	p = old.positionOf(old.unitsAfter(p.blocks, p.rest+maxDebt))
	b := balance{p, old.capacity + 1}
	for i := range n.past {
		b = n.heir(i).inherit(n.past[i].layout, b, n.past[i].end)
	}
	_, deficit, _ := n.step(n.pack(b.rest, b.deficit), n.since(b.blocks, n.positionAt(t)), 0)
	return deficit == 0
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
