package redis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	proof "github.com/seed-181794aa/ratelimit/internal/proof/audit"
)

// span is a cost in units that was decided at some instant from one time to another, both in µs. If
// the instant is known, the times are the same.
type span struct{ from, to, units int64 }

// audit judges the grants of one key by its limit. It counts in parts of a unit, of which the rate
// supplies a whole number in a µs. So all results are exact.
type audit struct {
	*layout
	grants []span // in the order of from

	// The ideal bucket is continuous. It has a meaning if the instants of all grants are known.
	levels []int64 // after each grant
	lost   int64   // came while it was full
}

// newAudit sorts the grants. There is at least one.
func newAudit(m *layout, grants []span) *audit {
	slices.SortFunc(grants, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	a := &audit{layout: m, grants: grants}
	level, last := a.full(), int64(0)
	for i, g := range grants {
		if i > 0 {
			level += a.supply(g.from - last)
		}
		if level > a.full() {
			a.lost += level - a.full()
			level = a.full()
		}
		level, last = level-a.amount(g.units), g.from
		a.levels = append(a.levels, level)
	}
	return a
}

func (a *audit) amount(units int64) int64 { return units * int64(a.d) }

func (a *audit) supply(us int64) int64 { return us * int64(a.n) }

func (a *audit) full() int64 { return a.amount(int64(a.capacity)) }

// inTokens returns an amount in tokens.
func (a *audit) inTokens(amount int64) float64 {
	return float64(amount) / float64(a.d) / float64(a.scale)
}

// granted returns the sum of the grants.
func (a *audit) granted() (sum int64) {
	for _, g := range a.grants {
		sum += a.amount(g.units)
	}
	return sum
}

// excess returns the most by which the grants of an interval exceed Capacity + rate·interval. It is
// negative if none does. A grant counts if it was certainly made in the interval.
func (a *audit) excess() int64 {
	first := a.grants[0].from
	var all []proof.Grant[int64]
	for _, g := range a.grants {
		all = append(all, proof.Grant[int64]{
			From: g.from, To: g.to, Amount: a.amount(g.units),
			Least: a.supply(g.from-first) - a.full(), Most: a.supply(g.to - first),
		})
	}
	return new(proof.Auditor[int64]).Add(all)
}

// least returns the least that the ideal bucket has held from one time to another.
func (a *audit) least(from, to int64) int64 {
	i, _ := slices.BinarySearchFunc(a.grants, from+1, func(g span, t int64) int {
		return cmp.Compare(g.from, t)
	})
	level := a.full()
	if i > 0 {
		level = min(level, a.levels[i-1]+a.supply(from-a.grants[i-1].from))
	}
	for ; i < len(a.grants) && a.grants[i].from <= to; i++ {
		level = min(level, a.levels[i])
	}
	return level
}

// What was granted, lost and left is what was supplied, and the ideal bucket has held as little as
// the excess says.
func TestAudit(t *testing.T) {
	above, lost := 0, 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 30))
		m := layout{
			capacity: 1 + rng.Uint64N(50), scale: 1, n: 1 + rng.Uint64N(5), d: 1 + rng.Uint64N(5),
		}
		grants := make([]span, 1+rng.IntN(20))
		for i := range grants {
			from := rng.Int64N(50)
			grants[i] = span{from, from, 1 + rng.Int64N(10)}
		}
		a := newAudit(&m, grants)
		excess := a.excess()
		if least := a.least(0, 100); least != min(a.full(), -excess) {
			t.Fatalf("seed %d: the ideal bucket has held %d at least, want %d", seed, least, -excess)
		}
		last := grants[len(grants)-1].from
		supplied := a.full() + a.supply(last-grants[0].from)
		if a.granted()+a.lost+a.least(last, last) != supplied {
			t.Fatalf("seed %d: granted, lost and left of %v with %+v are not the supply", seed, grants, m)
		}
		if excess > 0 {
			above++
		}
		if a.lost > 0 {
			lost++
		}
	}
	if above < 200 || above > 1800 || lost < 200 {
		t.Errorf("%d of 2000 are above the bound, %d have lost supply", above, lost)
	}
}
