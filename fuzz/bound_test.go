package fuzz

import (
	"math/big"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

// deepest is the most debt that a call may wait for.
var deepest = big.NewRat(2*tb.MaxCapacity, 1)

func tokens(n int) *big.Rat { return big.NewRat(int64(n), 1) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// grant is a grant of cost tokens, and the time in supply at which they may be used.
type grant struct{ slot, cost *big.Rat }

// checkBound checks C1, but for the given error, on every interval between two grants. It returns
// the reason if C1 is violated.
func checkBound(b *ideal.Bucket, grants []grant, error *big.Rat) string {
	burst := new(big.Rat).Add(b.Burst(), error)
	for i, first := range grants {
		sum := new(big.Rat)
		for _, last := range grants[i:] {
			sum.Add(sum, last.cost)
			bound := new(big.Rat).Sub(last.slot, first.slot)
			if bound.Add(bound, burst); sum.Cmp(bound) > 0 {
				return "granted " + between(sum, first.slot, last.slot, bound)
			}
		}
	}
	return ""
}

// between describes tokens that are more than a bound.
func between(tokens, from, to, bound *big.Rat) string {
	return tokens.FloatString(9) + " from " + from.FloatString(9) + " to " + to.FloatString(9) +
		" of supply, where " + bound.FloatString(9) + " are allowed"
}
