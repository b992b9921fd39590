package main

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"
)

// forever is later than every instant of a run.
const forever = time.Duration(math.MaxInt64)

// bound is what a rule may grant a key in each interval. Instants are since the beginning of the
// run.
type bound struct {
	phases []phase // in the order of from; the first begins at 0
	gifts  []gift
}

// phase is a limit from an instant on. While a limit changes, the phase has the greater one.
type phase struct {
	from time.Duration
	limit
}

// gift is tokens that a key may get once, at an instant from one to another, because a store loses
// its buckets.
type gift struct {
	from, to time.Duration
	tokens   float64
}

// set puts a limit in force.
func (b *bound) set(at time.Duration, l limit) { b.phases = append(b.phases, phase{at, l}) }

// limitAt returns the limit in force.
func (b *bound) limitAt(t time.Duration) (l limit) {
	for _, p := range b.phases {
		if p.from <= t {
			l = p.limit
		}
	}
	return l
}

// supply returns what the rate supplies until an instant.
func (b *bound) supply(t time.Duration) (tokens float64) {
	for i, p := range b.phases {
		to := t
		if i+1 < len(b.phases) {
			to = min(t, b.phases[i+1].from)
		}
		if to > p.from {
			tokens += p.rate * (to - p.from).Seconds()
		}
	}
	return tokens
}

// most returns the supply until an instant and the gifts that may have come by then.
func (b *bound) most(t time.Duration) float64 {
	tokens := b.supply(t)
	for _, g := range b.gifts {
		if g.from <= t {
			tokens += g.tokens
		}
	}
	return tokens
}

// least returns the supply until an instant and the gifts that have certainly come before.
func (b *bound) least(t time.Duration) float64 {
	tokens := b.supply(t)
	for _, g := range b.gifts {
		if g.to < t {
			tokens += g.tokens
		}
	}
	return tokens
}

// grant is when a granted request was sent, and when its answer came. It was decided in between.
type grant struct{ sent, received time.Duration }

// excess returns the most by which the grants of an interval exceed the capacity at its beginning
// and what the interval supplies. It is negative if none does. A grant counts if it was certainly
// made in the interval.
//
// An interval that matters begins when a grant was sent, and ends when a grant was received. The
// ends are taken in order. A tree has the sums of all intervals with that end.
func (b *bound) excess(grants []grant) float64 {
	slices.SortFunc(grants, func(x, y grant) int { return cmp.Compare(x.sent, y.sent) })
	byEnd := make([]int, len(grants))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortFunc(byEnd, func(i, j int) int {
		return cmp.Compare(grants[i].received, grants[j].received)
	})
	type node struct {
		sum  float64 // of the grants below the node
		most float64 // of the supply until a grant below, less the capacity, plus the sum from it on
	}
	leaves := 1 << bits.Len(uint(len(grants)))
	tree := slices.Repeat([]node{{0, math.Inf(-1)}}, 2*leaves)
	worst := math.Inf(-1)
	for _, i := range byEnd {
		g := grants[i]
		k := leaves + i
		tree[k] = node{1, b.least(g.sent) - b.limitAt(g.sent).capacity + 1}
		for k /= 2; k > 0; k /= 2 {
			x, y := tree[2*k], tree[2*k+1]
			tree[k] = node{x.sum + y.sum, max(x.most+y.sum, y.most)}
		}
		worst = max(worst, tree[1].most-b.most(g.received))
	}
	return worst
}
