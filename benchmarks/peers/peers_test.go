package peers

import (
	"slices"
	"testing"

	"github.com/seed-181794aa/ratelimit/benchmarks"
)

func BenchmarkAllow(b *testing.B) {
	benchmarks.Run(b, slices.Concat(benchmarks.Own, Peers))
}
