package replay

import (
	"fmt"
	"math"
	"testing"
)

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
