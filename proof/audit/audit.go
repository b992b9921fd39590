// Package audit judges grants by C1 of package tb, of which each call says only between which two
// times it was decided.
package audit

import (
	"cmp"
	"math/bits"
	"slices"
)

// Number is a number of tokens, or of parts of a token if the result must be exact.
type Number interface{ ~int64 | ~float64 }

// Grant is a grant of one key, which was decided at some time from From to To.
type Grant[N Number] struct {
	From, To int64
	Amount   N
	// Least is what has certainly been supplied before From, less the capacity at From. Most is what
	// may have been supplied by To.
	Least, Most N
}

// Auditor audits the grants of one key. Its zero value has seen none.
type Auditor[N Number] struct {
	seen bool
	most N // of Least, plus the amounts from that grant on
}

// Add returns the most by which the grants of an interval exceed the capacity at its beginning and
// what the interval supplies, among the intervals that end with one of these grants. It is negative
// if none does. A grant counts if it was certainly made in the interval. There is at least one
// grant, and each grant that was added before had ended when the first of these began. Add sorts
// the grants.
//
// An interval that matters begins at the From of a grant and ends at the To of a grant. The ends
// are taken in order, and a tree has the sums of all intervals with that end. So n grants take
// n·log n steps.
func (a *Auditor[N]) Add(grants []Grant[N]) (excess N) {
	slices.SortFunc(grants, func(x, y Grant[N]) int { return cmp.Compare(x.From, y.From) })
	byEnd := make([]int, len(grants))
	for i := range byEnd {
		byEnd[i] = i
	}
	slices.SortFunc(byEnd, func(i, j int) int { return cmp.Compare(grants[i].To, grants[j].To) })
	type node struct {
		sum, most N // of the grants below the node
		any       bool
	}
	join := func(x, y *node) node {
		most := x.most + y.sum
		if !x.any || y.any && y.most > most {
			most = y.most
		}
		return node{x.sum + y.sum, most, x.any || y.any}
	}
	leaves := 1 << bits.Len(uint(len(grants)))
	tree := make([]node, 2*leaves)
	before := node{most: a.most, any: a.seen}
	all := before
	for n, i := range byEnd {
		g, k := &grants[i], leaves+i
		tree[k] = node{g.Amount, g.Least + g.Amount, true}
		for k /= 2; k > 0; k /= 2 {
			tree[k] = join(&tree[2*k], &tree[2*k+1])
		}
		all = join(&before, &tree[1])
		if over := all.most - g.Most; n == 0 || over > excess {
			excess = over
		}
	}
	a.most, a.seen = all.most, true
	return excess
}
