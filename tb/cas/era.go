package cas

import (
	"math"
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// keptEras is the number of ended eras from which on those are forgotten whose buckets must all be
// full.
const keptEras = 64

// grace is the time that a SetLimit may take from its clock reading to the change.
const grace = uint64(time.Minute)

// change returns the layout that takes the place of m at instant t with another limit, and begins a
// new era. No bucket has been deeper in debt than owed, in millionths of a token: see limits.owe.
func (m *layout) change(l tb.Limit, t, owed uint64) *layout {
	n := newLayout(l, 0, 0)
	n.end, n.begin = m.end, t
	n.owner = m.owner + 1<<tierBits
	n.supply.from = t - min(t, m.carried(n, t))
	n.eras = m.eras
	n.eras = append(n.eras, m.ended(t)) // in place: m has the same list without the last era
	for len(n.eras) > keptEras && n.fills(n.eras[0], owed) {
		n.eras = n.eras[1:]
	}
	if cap(n.eras) > 4*len(n.eras) { // most of the array refers to eras that are forgotten
		n.eras = slices.Clone(n.eras)
	}
	return n
}

// ended returns m as the layout of an era that has ended at t. It is without the eras before it:
// with them, no era would ever be collected. DESIGN.md §10 says which of them its run has.
func (m *layout) ended(t uint64) *layout {
	e := *m
	e.eras, e.until = nil, t
	e.run = e.alone(0)
	if last := len(m.eras) - 1; last >= 0 {
		before := m.eras[last].run
		if i := last - before.eras; i >= 0 && m.eras[i].run.eras == before.eras {
			e.run = m.eras[i].run.then(before).then(e.run)
		}
	}
	return &e
}

// then returns the run of r and next. No bucket lacks as much as the greatest gain.
func (r run) then(next run) run {
	gain, most := min(r.gain+next.gain, 1<<60), min(r.most+next.gain, next.most)
	return run{r.eras + next.eras, gain, most, min(r.least, next.least)}
}

// alone returns the run of one era, for a bucket whose own time is t.
func (m *layout) alone(t uint64) run {
	gain := m.supply.at(m.until).after(m.supplyFrom(t))
	return run{1, int64(m.microsUpTo(gain)), m.full(), m.full()}
}

// fills reports whether each bucket of the oldest era is full when m begins, also one that was in
// the deepest debt and ahead of the end of its era by grace.
func (m *layout) fills(oldest *layout, owed uint64) bool {
	ahead, _ := oldest.supply.rate.times(grace)
	debt := int64(owed + oldest.microsUpTo(ahead.lo))
	tokens, _ := m.since(0, -debt, oldest.until+grace)
	return tokens >= m.full()
}

// since returns what a bucket of eras[i] has when m begins, if it has a number of tokens at instant
// t, the end of its era or later. It returns t if m begins before. All tokens are in millionths.
func (m *layout) since(i int, tokens int64, t uint64) (int64, uint64) {
	all := run{most: math.MaxInt64}
	for k := len(m.eras) - 1; k > i; {
		e := m.eras[k]
		r, before := e.run, k-e.run.eras
		switch {
		case before < i || m.eras[before].until < t && t <= e.until:
			r = e.alone(t)
		case t > e.until: // the bucket's own time was a reading from the future
			r.gain, r.most = 0, r.least
		}
		all = r.then(all)
		k -= r.eras
	}
	return min(tokens+all.gain, all.most), max(t, m.begin)
}

// eraOf returns the index of the era of c, which has ended, or -1 if it is forgotten. The era of a
// hold is the one in which it has ended.
func (m *layout) eraOf(c *cell, word uint64) int {
	if c.isHeld() {
		until, _ := c.heldUntil(word)
		return sort.Search(len(m.eras), func(i int) bool { return m.eras[i].begin >= until }) - 1
	}
	first := m.eras[0].owner >> tierBits
	return int(max(int64(c.owner()>>tierBits-first), -1))
}

// balanceSince returns the balance in m of a cell of m or of an era before m, or of a hold.
func (m *layout) balanceSince(c *cell, word uint64) balance {
	if m.owns(c) {
		return m.balanceOf(c.base, word)
	}
	if c.isHeld() {
		if until, micros := c.heldUntil(word); until > m.begin {
			return m.balanceWith(-micros, m.supply.at(until))
		}
	}
	tokens, since := m.tokensSince(c, word)
	return m.balanceWith(tokens, m.supplyFrom(since))
}

// tokensSince returns the tokens that the bucket of a cell of an ended era has under m, in
// millionths and negative in debt, or of a hold that has ended before m. since is the instant at
// which it has them: the beginning of m, unless its own time is later.
func (m *layout) tokensSince(c *cell, word uint64) (micros int64, since uint64) {
	i := m.eraOf(c, word)
	if i < 0 { // when the era was forgotten, its buckets were full, and so were full ones of eras[0]
		first := m.eras[0]
		return m.since(0, first.full(), first.until)
	}
	e := m.eras[i]
	tokens, t := e.tokensAt(e.balanceSince(c, word), e.until)
	return m.since(i, tokens, t)
}

// supplyFrom returns S(t) for a bucket that has had what the eras before have supplied.
func (m *layout) supplyFrom(t uint64) wide {
	if t <= m.begin {
		return wide{}
	}
	return m.supply.at(t)
}

// carried returns the nanoseconds in which n supplies the fraction of a unit that m has supplied
// at t beyond whole units, rounded down.
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

// tokensAt returns the tokens of a bucket at instant t, in millionths and negative in debt. since
// is the instant at which it has them. That is t, unless the bucket's own time is later and it is
// not in debt. Then since is the last instant of that time.
func (m *layout) tokensAt(b balance, t uint64) (micros int64, since uint64) {
	now := m.supply.at(t)
	missing := min(b.missing(now), m.capacity+deepestDebt*m.scale)
	if b.deficit > m.capacity || !now.before(b.time) {
		return m.full() - int64(m.micros(missing)), t
	}
	next := m.supply.timeOf(b.time.plus(1)) // it is ahead of t
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

// saved is the state of a bucket, in tokens, by instants.
type saved struct {
	tokens    float64
	at, until uint64 // at which it has them, and until which it is held, or 0
}

// restored returns the balance of a bucket that had the state s. It has been refilled at the
// present rate since, also before the limit has changed. Or it is held, and has the state then.
func (m *layout) restored(s saved, now uint64) balance {
	units := int64(math.Round(s.tokens * float64(m.scale)))
	if s.until > max(now, m.begin) {
		b := m.balanceOfUnits(units, m.supply.at(s.until))
		b.until = s.until
		return b
	}
	at := min(s.at, now)
	supplied, _ := m.supply.rate.times(m.begin - min(m.begin, at))
	units += int64(min(supplied.after(wide{}), mostDebt))
	return m.balanceOfUnits(units, m.supply.at(max(at, m.begin)))
}
