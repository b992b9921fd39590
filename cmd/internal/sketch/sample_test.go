package sketch

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// A sample has all keys of its hashes and no other one, and stays within its bound.
func TestASampleHasItsKeysFromTheirFirstValue(t *testing.T) {
	const bound, keys = 100, 5000
	s := NewSample[int, int](bound, func(k int) uint64 { return hash.Mix(uint64(k)) })
	for k := 1; k <= keys; k++ {
		if s.Takes(hash.Mix(uint64(k))) {
			s.Put(k, k)
		}
		if exact := k <= bound; len(s.Values) > bound || exact != (s.OneIn() == 1) {
			t.Fatalf("%d of %d keys, one in %d", len(s.Values), k, s.OneIn())
		}
	}
	for k := 1; k <= keys; k++ {
		if v, is := s.Values[k]; is != s.Takes(hash.Mix(uint64(k))) || is && v != k {
			t.Errorf("%d: %d is in the sample", k, v)
		}
	}
	if n := float64(len(s.Values)) * float64(s.OneIn()); n < keys*0.7 || n > keys*1.3 {
		t.Errorf("%v keys estimated of %d", n, keys)
	}
}
