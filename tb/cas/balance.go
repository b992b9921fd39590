package cas

import (
	"math"
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// grace is the time that a SetLimit may take from its clock reading to the change.
const grace = uint64(time.Minute)

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
// not in debt. Then since is the last instant of that time.
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
	return int64(m.micros(m.capacity - b.deficit)), next - 1
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
		return position{}
	}
	return m.positionAt(t)
}

// before reports whether p is before q.
func (p position) before(q position) bool {
	return p.blocks < q.blocks || p.blocks == q.blocks && p.rest < q.rest
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
