package redis

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// BenchmarkAllow measures a call on a server of this machine. per_user has a key for each
// goroutine.
func BenchmarkAllow(b *testing.B) {
	c := dial(b, redistest.Start(b))
	for _, callers := range []int{1, 64} {
		for _, key := range []string{"hot_key", "per_user"} {
			b.Run(key+"/callers="+strconv.Itoa(callers), func(b *testing.B) {
				l := newLimiter(b, c, tb.Limit{Capacity: 1e9, Tokens: 1, Per: 1000})
				var caller atomic.Int64
				b.ReportAllocs()
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				if callers == 1 {
					for b.Loop() {
						allow(b, l, key)
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					name := key
					if key == "per_user" {
						name += strconv.FormatInt(caller.Add(1), 10)
					}
					for pb.Next() {
						allow(b, l, name)
					}
				})
			})
		}
	}
}

func allow(b *testing.B, l *Limiter, key string) {
	if d, err := l.Allow(b.Context(), key); err != nil || !d.Allowed {
		b.Fatalf("%+v, %v", d, err)
	}
}
