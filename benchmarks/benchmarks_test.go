package benchmarks

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

func BenchmarkAllow(b *testing.B) { Run(b, Own) }

// BenchmarkAllowAt is a decision for a caller that has read the clock already, and
// the clock reading that it spares.
func BenchmarkAllowAt(b *testing.B) {
	b.Run("impl=cas", func(b *testing.B) {
		l := must(cas.New[string](generous))
		now := time.Now()
		granted := 0
		for b.Loop() {
			if d, _ := l.AllowAt(now, "client-0000001", 1); d.Allowed {
				granted++
			}
		}
		if granted != min(b.N, tb.MaxCapacity) {
			b.Errorf("%d of %d granted", granted, b.N)
		}
	})
	b.Run("impl=clock", func(b *testing.B) {
		start := time.Now()
		var sum time.Duration
		for b.Loop() {
			sum += time.Since(start)
		}
		if sum == 0 {
			b.Error("the clock stands still")
		}
	})
}
