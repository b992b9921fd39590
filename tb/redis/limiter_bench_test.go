package redis

import (
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// BenchmarkAllow measures a call on a server of this machine. In hot_key no call is refused, and in
// refuse most are. per_user has a key for each goroutine.
func BenchmarkAllow(b *testing.B) {
	c := dial(b, redistest.Start(b))
	generous := tb.Limit{Capacity: 1e9, Tokens: 1, Per: 1000}
	for _, load := range []struct {
		name  string
		limit tb.Limit
		opts  []Option
	}{
		{"hot_key", generous, nil},
		{"per_user", generous, nil},
		{"refuse", tb.Limit{Capacity: 1000, Tokens: 10_000, Per: time.Second}, nil},
		{"alone", generous, []Option{WithoutBatching()}},
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", load.name, callers), func(b *testing.B) {
				l := newLimiter(b, c, load.limit, append(load.opts, WithPrefix(b.Name()))...)
				var caller atomic.Int64
				allow(b, l, "another key")
				before := l.Stats()
				b.ReportAllocs()
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				calls := func(next func() bool) {
					key := load.name
					if load.name == "per_user" {
						key += strconv.FormatInt(caller.Add(1), 10)
					}
					for next() {
						allow(b, l, key)
					}
				}
				if callers == 1 {
					calls(b.Loop)
				} else {
					b.RunParallel(func(pb *testing.PB) { calls(pb.Next) })
				}
				b.StopTimer()
				after := l.Stats()
				b.ReportMetric(float64(after.Commands-before.Commands)/float64(b.N), "commands/op")
				refused := after.Refused + after.RefusedLocally
				if all := after.Granted + refused; load.name != "refuse" && refused > 0 ||
					load.name == "refuse" && b.N > 100_000 && refused < all/2 {
					b.Errorf("Stats: %+v", after)
				}
			})
		}
	}
}

func allow(b *testing.B, l *Limiter, key string) {
	if _, err := l.Allow(b.Context(), key); err != nil {
		b.Fatal(err)
	}
}
