package suggest

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// BenchmarkAMillionClients has the memory of a million clients with two requests each. The second
// one finds all buckets full again, or the buckets of the higher rates only.
func BenchmarkAMillionClients(b *testing.B) {
	clients := int64(1_000_000)
	if testing.Short() {
		clients = 1000
	}
	for _, bm := range []struct {
		name  string
		rates int
		pause time.Duration
	}{
		{"18-rates/alike", 18, time.Hour},
		{"18-rates/apart", 18, time.Second},
		{"2-rates/apart", 2, time.Second},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var limits []tb.Limit
			for i := range int64(bm.rates) {
				limits = append(limits, tb.Limit{Capacity: 1, Tokens: 1 + i*i, Per: time.Minute})
			}
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				c := New(limits, 1, tb.DefaultMaxKeys)
				for _, t := range []int64{0, int64(bm.pause)} {
					for i := range clients {
						c.Add(strconv.AppendInt([]byte("192.0."), i, 10), t, 1)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(c)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
			}
		})
	}
}
