package algorithm

import (
	"math/rand/v2"
	"testing"
)

// A request is granted if and only if the last window has room, counted from all grants so far.
func TestSlidingLogIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		l := randomLimit(t, r)
		var s slidingLog
		var grants []grant
		for i, q := range traffic(l, r, 500) {
			sum := q.units
			for _, g := range grants {
				if g.instant+l.window > q.instant {
					sum += g.units
				}
			}
			got := s.take(l, q.instant, q.units).Granted
			if want := sum <= l.capacity; got != want {
				t.Fatalf("%+v, request %d: granted %v, want %v", l, i, got, want)
			}
			if got {
				grants = append(grants, q)
			}
		}
	}
}

// The state of a key grows with the burst, up to a record for each grant. The other states do not
// grow.
func TestOnlyTheStateOfASlidingLogGrows(t *testing.T) {
	for _, burst := range []int{10, 1000} {
		l := newLimit(t, burst, int64(burst), 1e9)
		for name, want := range map[string]int{
			"token-bucket": 16, "fixed-window": 16, "sliding-window": 24, "leaky-bucket": 16, "gcra": 16,
			"sliding-log": 32 + 16*burst,
		} {
			limiter := newLimiter(t, name, l)
			for i := range 3 * burst {
				limiter.Take("k", second+uint64(i), unitsPerToken)
			}
			s := limiter.Stats()
			if s.Keys != 1 || s.Bytes != want || s.MostBytes != want {
				t.Errorf("%s, burst %d: %+v, want %d bytes", name, burst, s, want)
			}
		}
	}
	limiter := newLimiter(t, "sliding-log", newLimit(t, 10, 10, 1e9))
	granted(limiter, second, 10)
	if s := limiter.Stats(); s.Bytes != 32+16 {
		t.Errorf("ten grants in an instant: %+v", s)
	}
}
