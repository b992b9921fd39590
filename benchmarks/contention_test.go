package benchmarks

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkContention measures goroutines that share one word, without a limiter. line=add
// makes an atomic addition: its time is the transfer of a cache line between cores.
// line=load reads the word, as a refusal does. line=cas is the loop of a grant: it reads the
// clock once and repeats load, arithmetic and compare-and-swap until one succeeds. It
// reports the failed attempts.
func BenchmarkContention(b *testing.B) {
	var word atomic.Uint64
	start := time.Now()
	for _, line := range []struct {
		name string
		use  func() (failures int)
	}{
		{"add", func() int { word.Add(1); return 0 }},
		{"load", func() int { return int(word.Load() >> 63) }},
		{"cas", func() (failures int) {
			now := uint64(time.Since(start))
			for {
				old := word.Load()
				if word.CompareAndSwap(old, advance(old, now)) {
					return failures
				}
				failures++
			}
		}},
	} {
		for _, par := range []int{1, 2, 4, 16, 64, 256} {
			b.Run(fmt.Sprintf("line=%s/par=%d", line.name, par), func(b *testing.B) {
				word.Store(0)
				failures := together(b.N, par, func(start, end int) (failures int) {
					for range end - start {
						failures += line.use()
					}
					return failures
				})
				b.ReportMetric(float64(failures)/float64(b.N), "failures/op")
			})
		}
	}
}

// advance is about as long as a bucket's arithmetic: it refills for the time since the
// word's time, up to a capacity, and takes one token. It always grants.
func advance(word, now uint64) uint64 {
	const deficitBits = 20
	last, deficit := word>>deficitBits, word&(1<<deficitBits-1)
	later := max(last, now)
	deficit -= min(deficit, later-last)
	return later<<deficitBits | min(deficit+1, 1<<deficitBits-1)
}
