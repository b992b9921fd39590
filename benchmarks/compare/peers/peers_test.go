package peers

import (
	"slices"
	"testing"

	"github.com/seed-181794aa/ratelimit/benchmarks"
)

func contenders() []benchmarks.Contender { return slices.Concat(benchmarks.Own, Peers) }

func BenchmarkAllow(b *testing.B) { benchmarks.Run(b, contenders()) }

func BenchmarkMemory(b *testing.B) { benchmarks.Memory(b, contenders()) }

func BenchmarkFlood(b *testing.B) { benchmarks.Flood(b, contenders()) }
