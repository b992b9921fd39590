package main

import (
	"math"
	"time"

	proof "github.com/seed-181794aa/ratelimit/proof/audit"
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
// and what the interval supplies. It is negative if none does.
func (b *bound) excess(grants []grant) float64 {
	var all []proof.Grant[float64]
	for _, g := range grants {
		all = append(all, proof.Grant[float64]{
			From: int64(g.sent), To: int64(g.received), Amount: 1,
			Least: b.least(g.sent) - b.limitAt(g.sent).capacity, Most: b.most(g.received),
		})
	}
	return new(proof.Auditor[float64]).Add(all)
}
