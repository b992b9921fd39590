package replay

import (
	"fmt"
	"math"
	"testing"
)

// The keys with the most requests stay. A key that replaces another one inherits its count. The
// ones that were refused most come first.
func TestRanking(t *testing.T) {
	r := newRanking(3)
	for _, n := range []int{3, 2, 2, 2, 1, 1, 1, 1, 4, 4} { // 4 replaces 3
		r.track(key(n)).Value.add(0, n == 1)
	}
	var got string
	for _, e := range r.top(3) {
		got += fmt.Sprintf("%s: %d of %d, %v; ", e.Key, e.Value.refused, e.Value.requests, e.Count)
	}
	if want := "key 2: 3 of 3, 3; key 4: 2 of 2, 3; key 1: 0 of 4, 4; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func key(n int) []byte { return fmt.Appendf(nil, "key %d", n) }

func TestKeyCounts(t *testing.T) {
	const bound, keys = 4096, 300_000
	c := newDistinctCounter(bound)
	for n := range keys {
		c.add(key(n))
		c.add(key(n / 2))
		size := len(c.hashes.Values)
		if n < bound && (c.total() != uint64(n+1) || !c.exact()) || size > bound {
			t.Fatalf("after %d keys: a count of %d, exact %v, %d entries", n+1, c.total(), c.exact(), size)
		}
	}
	const tolerance = 5 * 0.022 // standard errors of a sample of half the bound
	if off := math.Abs(float64(c.total())/keys - 1); off > tolerance || c.exact() {
		t.Errorf("%d keys of %d: off by %.3f, exact %v", c.total(), keys, off, c.exact())
	}
}
