package benchmarks

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// limits are a limit, the same at another rate, and one with another capacity and scale.
var limits = []tb.Limit{
	{Capacity: 100, Tokens: 100, Per: time.Second},
	{Capacity: 100, Tokens: 50, Per: time.Second},
	{Capacity: 1000, Tokens: 100, Per: time.Second},
}

// BenchmarkSetLimit changes the limit of a million keys, and makes calls right after.
func BenchmarkSetLimit(b *testing.B) {
	const keys = 1_000_000
	l := must(cas.New[string](limits[0]))
	names := make([]string, keys)
	for i := range names {
		names[i] = "client-" + strconv.Itoa(i)
		_, _ = l.Allow(context.Background(), names[i])
	}
	for other, name := range map[int]string{1: "rate", 2: "capacity"} {
		b.Run("change="+name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if err := l.SetLimit(limits[i%2*other]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("first-call-after="+name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%keys == 0 {
					b.StopTimer()
					_ = l.SetLimit(limits[i/keys%2*other])
					b.StartTimer()
				}
				_, _ = l.Allow(context.Background(), names[i%keys])
			}
		})
	}
}

// BenchmarkReserve takes tokens that may be used at once, and that must be waited for.
func BenchmarkReserve(b *testing.B) {
	ctx := context.Background()
	b.Run("wait=none", func(b *testing.B) {
		l := must(cas.New[string](generous))
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Wait(ctx, "a", 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reserve=settle", func(b *testing.B) {
		l := must(cas.New[string](generous))
		b.ReportAllocs()
		for b.Loop() {
			r, _ := l.Reserve(ctx, "a", 2)
			_ = r.Settle(1)
		}
	})
	b.Run("reserve=cancel", func(b *testing.B) {
		l := must(cas.New[string](tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}))
		_, _ = l.Allow(ctx, "a")
		b.ReportAllocs()
		for b.Loop() {
			r, _ := l.Reserve(ctx, "a", 1)
			r.Cancel()
		}
	})
}
