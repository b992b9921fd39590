package benchmarks

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkContention is what goroutines cost each other on a word that all of them use,
// without a limiter around it. line=add writes the word without reading anything first: it
// is the time that a cache line takes from core to core. line=load only reads it, as a
// refusal does. line=cas is the loop of a grant: the clock is read once; then load, a few
// nanoseconds of arithmetic, compare-and-swap, and again if another came first. The
// share of attempts that fail is reported.
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
				failures := together(b.N, par, line.use)
				b.ReportMetric(float64(failures)/float64(b.N), "failures/op")
			})
		}
	}
}

// advance is arithmetic of about the length of a bucket's step: it refills by the time
// since the word's, up to a capacity, and takes one token. It always grants.
func advance(word, now uint64) uint64 {
	const tokens = 20 // bits
	at, deficit := word>>tokens, word&(1<<tokens-1)
	later := max(at, now)
	deficit -= min(deficit, later-at)
	return later<<tokens | min(deficit+1, 1<<tokens-1)
}

// together makes n calls from par goroutines and adds up what they return.
func together(n, par int, use func() int) int {
	var all sync.WaitGroup
	var next, sum atomic.Int64
	for range par {
		all.Go(func() {
			failures := 0
			for start := int(next.Add(batch)) - batch; start < n; start = int(next.Add(batch)) - batch {
				for range min(batch, n-start) {
					failures += use()
				}
			}
			sum.Add(int64(failures))
		})
	}
	all.Wait()
	return int(sum.Load())
}
