package replay

import (
	"fmt"
	"math"
	"testing"
)

// The keys with the most requests stay. A key that replaces another one inherits its count. The
// ones that were refused most come first.
func TestRanking(t *testing.T) {
	r, v := newRanking(3), newVisitors(9)
	for _, n := range []int{3, 2, 2, 2, 1, 1, 1, 1, 4, 4} { // 4 replaces 3
		r.track(key(n), &v).Value.add(0, 0, n == 1)
	}
	var got string
	for _, e := range r.top(3) {
		got += fmt.Sprintf("%s: %d of %d, %v; ", e.Key, e.Value.refused, e.Value.Requests, e.Count)
	}
	if want := "key 2: 3 of 3, 3; key 4: 2 of 2, 3; key 1: 0 of 4, 4; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func key(n int) []byte { return fmt.Appendf(nil, "key %d", n) }

func TestKeyCounts(t *testing.T) {
	const bound, keys = 4096, 300_000
	v := newVisitors(bound)
	for n := range keys {
		v.of(key(n))
		v.of(key(n / 2))
		size := len(v.Values)
		if n < bound && (v.keys() != uint64(n+1) || v.OneIn() != 1) || size > bound {
			t.Fatalf("after %d keys: a count of %d, one in %d, %d entries", n+1, v.keys(), v.OneIn(), size)
		}
	}
	const tolerance = 5 * 0.022 // standard errors of a sample of half the bound
	if off := math.Abs(float64(v.keys())/keys - 1); off > tolerance || v.OneIn() == 1 {
		t.Errorf("%d keys of %d: off by %.3f, one in %d", v.keys(), keys, off, v.OneIn())
	}
}
