package replay

import (
	"fmt"
	"math"
	"testing"
)

func key(n int) []byte { return fmt.Appendf(nil, "key %d", n) }

func TestKeyCountsAreExactUpToTheBound(t *testing.T) {
	c := newKeyCounter(100)
	for n := range 100 {
		c.add(key(n), 0)
		c.add(key(n), uint64(n%4))
		c.add(key(n), 0)
	}
	if c.all.total() != 100 || !c.all.exact() ||
		c.refused.totalWith(0) != 50 || c.refused.totalWith(1) != 50 {
		t.Errorf("%d keys, refused %d and %d, exact %v; want 100, 50, 50, true",
			c.all.total(), c.refused.totalWith(0), c.refused.totalWith(1), c.all.exact())
	}
	for n := range 1000 {
		c.add(key(n), 0)
	}
	if c.all.exact() || c.refused.totalWith(0) != 50 {
		t.Errorf("beyond the bound: exact %v, %d refused; want false and still 50",
			c.all.exact(), c.refused.totalWith(0))
	}
}

func TestKeyCountsAreEstimatedBeyondTheBound(t *testing.T) {
	const bound, keys = 4096, 300_000
	c := newKeyCounter(bound)
	for n := range keys {
		refused := uint64(0)
		if n%3 == 0 {
			refused = 1
		}
		c.add(key(n), refused)
		if len(c.all.masks.Values) > bound || len(c.refused.masks.Values) > bound {
			t.Fatalf("after %d keys: %d entries and %d, want at most %d",
				n+1, len(c.all.masks.Values), len(c.refused.masks.Values), bound)
		}
	}
	const tolerance = 5 * 0.022 // standard errors of a sample of half the bound
	if off := math.Abs(float64(c.all.total())/keys - 1); off > tolerance {
		t.Errorf("%d keys of %d: off by %.3f", c.all.total(), keys, off)
	}
	if off := math.Abs(float64(c.refused.totalWith(0))/(keys/3) - 1); off > tolerance {
		t.Errorf("%d keys refused of %d: off by %.3f", c.refused.totalWith(0), keys/3, off)
	}
}
