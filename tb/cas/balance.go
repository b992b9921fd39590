package cas

import (
	"math/big"
	"math/bits"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// pastEras is the number of ended eras from which on setLimit forgets the eras whose buckets must
// all be full.
const pastEras = 64

// reachStep is the step in which the highest base is recorded, so that few cells write it.
const reachStep = 1 << 26

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
		debt := old.since(now.blocks, b.position) - now.rest + 1
		hi, lo := bits.Mul64(debt, m.scale)
		lo, carry := bits.Add64(lo, old.scale-1, 0)
		debt, _ = bits.Div64(hi+carry, lo, old.scale)
		p := m.positionAt(t)
		p = m.positionOf(m.unitsAfter(p.blocks, p.rest+min(debt, maxDebt)-1))
		return balance{p, m.capacity + 1}
	}
	if !now.before(b.position, 0) {
		b.deficit -= min(b.deficit, old.since(b.blocks, now)-b.rest)
	} else if at, ok := old.supply.timeOf(old.unitsAfter(b.blocks, b.rest)); ok {
		t = max(t, at) // a reading from the future
	}
	tokens := (old.capacity - b.deficit) * m.scale / old.scale
	return balance{m.positionAt(t), m.capacity - min(m.capacity, tokens)}
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
	n.firstBase, n.lastBase, n.past, n.highest = m.firstBase, m.lastBase, m.past, m.highest
	n.supply.from = t - min(t, m.carried(&n, t))
	n.supply.hi, n.supply.lo = m.supply.unitsBy(t)
	return &n, nil
}

// newEra makes n begin a new era at t. All bases of m lie so far before the first base of n that
// no delta of n spans the difference. So the fast path takes no cell of m for one of n. No call
// has brought a reading that is later than the highest base. If a call brings one to m while the
// era ends, its bucket may have a wrong time.
func (m *layout) newEra(n *layout, t uint64) (*layout, error) {
	n.setBlockBits(n.blockBits)
	if m.tiered {
		if err := n.checkBlock(); err != nil {
			return nil, err
		}
	}
	highest := max(m.positionAt(t).blocks, m.highest.Load()) + 2*reachStep
	n.firstBase = highest + uint64(1)<<(63-n.deficitBits-min(n.blockBits, 63-n.deficitBits)) + 1
	n.lastBase = m.lastBase - (n.firstBase - m.firstBase)
	n.highest = new(atomic.Uint64)
	n.supply.from = t - min(t, m.carried(n, t))
	n.supply.hi, n.supply.lo = n.unitsAfter(n.firstBase, 0)
	n.past = append(m.past[:len(m.past):len(m.past)], era{m, t, n})
	for len(n.past) > pastEras && n.past[0].isOver(n, t) {
		n.past = n.past[1:]
	}
	return n, nil
}

// inherit returns the balance with which a bucket begins the next era.
func (e *era) inherit(b balance) balance { return e.heir.inherit(e.layout, b, e.end) }

// isOver reports whether all buckets of the era are full at t, the deepest debt included.
func (e *era) isOver(n *layout, t uint64) bool {
	old := e.layout
	p := old.positionAt(e.end)
	p = old.positionOf(old.unitsAfter(p.blocks, p.rest+maxDebt))
	b := balance{p, old.capacity + 1}
	for i := range n.past {
		b = n.past[i].inherit(b)
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
		if base <= highest || m.highest.CompareAndSwap(highest, base|(reachStep-1)) {
			return
		}
	}
}
