package cas

import (
	"math"
	"math/big"
	"sort"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// keptEras is the number of ended eras from which on those are forgotten whose buckets must all be
// full.
const keptEras = 64

// grace is the time that a SetLimit may take from its clock reading to the change.
const grace = uint64(time.Minute)

// era is an ended era of a limit: the time from one change to the next. A bucket that had a number
// of tokens at its end had min(tokens + gained, most) when the present era began. Like all numbers
// here they are in millionths of a token.
type era struct {
	layout       *layout
	end          uint64 // instant
	gained, most int64
	ahead        uint64 // what the rate supplies in grace: a bucket may be so far ahead of end
}

// change returns the layout that takes the place of m at instant t with another limit, and begins a
// new era. No bucket has been deeper in debt than owed, in millionths of a token: see limits.owe.
func (m *layout) change(l tb.Limit, t, owed uint64) *layout {
	n := newLayout(l)
	n.end, n.begin = m.end, t
	n.owner = m.owner + 1<<tierBits
	n.supply.from = t - min(t, m.carried(&n, t))
	n.eras = m.erasUntil(t)
	full := int64(n.micros(n.capacity))
	for len(n.eras) > keptEras && n.through(n.arrived(), -int64(owed+n.eras[0].ahead)) == full {
		n.eras = n.eras[1:]
	}
	return &n
}

// erasUntil returns the eras before m, and m as an era that ends at t.
func (m *layout) erasUntil(t uint64) []era {
	const enough = 1 << 60 // fills a bucket in the deepest debt
	capacity := int64(m.micros(m.capacity))
	supplied := int64(m.microsUpTo(m.supply.at(t).after(wide{})))
	eras := make([]era, len(m.eras), len(m.eras)+1)
	for i, e := range m.eras {
		e.gained = min(e.gained+supplied, enough)
		e.most = min(e.most+supplied, capacity)
		eras[i] = e
	}
	ahead, _ := m.supply.rate.times(grace)
	return append(eras, era{m.alone(), t, 0, capacity, m.microsUpTo(ahead.lo)})
}

// alone returns m without the eras before it. With them, no era would ever be collected.
func (m *layout) alone() *layout {
	alone := *m
	alone.eras = nil
	return &alone
}

// arrived returns the index of the first era that ends at least grace after eras[0], so that no
// bucket of eras[0] is ahead of its end. Without such an era it is the last one.
func (m *layout) arrived() int {
	last := len(m.eras) - 1
	return sort.Search(last, func(i int) bool { return m.eras[i].end-m.eras[0].end >= grace })
}

// through returns what a bucket that has a number of tokens at the end of eras[i] has at the
// beginning of m.
func (m *layout) through(i int, tokens int64) int64 {
	e := &m.eras[i]
	return min(tokens+e.gained, e.most, int64(m.micros(m.capacity)))
}

// eraOf returns the index of the era of c, which has ended, or -1 if it is forgotten.
func (m *layout) eraOf(c *cell) int {
	first := m.eras[0].layout.owner >> tierBits
	return int(max(int64(c.owner>>tierBits-first), -1))
}

// balanceSince returns the balance in m of a cell of m or of an era before m.
func (m *layout) balanceSince(c *cell, word uint64) balance {
	if m.owns(c) {
		return m.balanceOf(c.base, word)
	}
	tokens, since := m.tokensSince(c, word)
	return m.balanceWith(tokens, m.supplyFrom(since))
}

// tokensSince returns the tokens that the bucket of a cell of an ended era has under m, in
// millionths and negative in debt. since is the instant at which it has them: the beginning of m,
// unless its own time is later.
func (m *layout) tokensSince(c *cell, word uint64) (micros int64, since uint64) {
	i := m.eraOf(c)
	if i < 0 { // when the era was forgotten, its buckets were full, and so were full ones of eras[0]
		first := m.eras[0].layout
		return m.through(0, int64(first.micros(first.capacity))), m.begin
	}
	e := &m.eras[i]
	tokens, since := e.layout.tokensAt(e.layout.balanceOf(c.base, word), e.end)
	if since == e.end {
		return m.through(i, tokens), m.begin
	}
	// The bucket's own time is a reading from the future, perhaps in a later era.
	for _, e := range m.eras[i+1:] {
		capacity := int64(e.layout.micros(e.layout.capacity))
		tokens = min(tokens, capacity)
		if since <= e.end {
			gain := e.layout.supply.at(e.end).after(e.layout.supplyFrom(since))
			tokens = min(capacity, tokens+int64(e.layout.micros(min(gain, e.layout.capacity))))
			since = e.end
		}
	}
	return tokens, since
}

// supplyFrom returns S(t) for a bucket that has had what the eras before have supplied. At the
// beginning of the era that is less than S(t) by the fraction of a unit that is carried.
func (m *layout) supplyFrom(t uint64) wide {
	if t <= m.begin {
		return wide{}
	}
	return m.supply.at(t)
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
