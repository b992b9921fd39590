package sketch

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// A sample has all values of its keys, drops each other value once, and stays within its bound.
func TestASampleHasItsKeysFromTheirFirstValue(t *testing.T) {
	const bound, keys = 100, 5000
	dropped := make(map[int]bool)
	s := NewSample[int, int](bound, func(k int) uint64 { return hash.Mix(uint64(k)) })
	for k := 1; k <= keys; k++ {
		if s.Takes(hash.Mix(uint64(k))) {
			s.Put(k, k, func(v int) {
				if dropped[v] {
					t.Errorf("%d is dropped twice", v)
				}
				dropped[v] = true
			})
		} else {
			dropped[k] = true
		}
		if exact := k <= bound; len(s.Values) > bound || exact != (s.OneIn() == 1) {
			t.Fatalf("%d of %d keys, one in %d", len(s.Values), k, s.OneIn())
		}
	}
	if len(dropped)+len(s.Values) != keys {
		t.Errorf("%d values dropped and %d kept, want %d", len(dropped), len(s.Values), keys)
	}
	for k, v := range s.Values {
		if dropped[k] || v != k || !s.Takes(hash.Mix(uint64(k))) {
			t.Errorf("%d: %d is in the sample", k, v)
		}
	}
	if n := float64(len(s.Values)) * float64(s.OneIn()); n < keys*0.7 || n > keys*1.3 {
		t.Errorf("%v keys estimated of %d", n, keys)
	}
}
