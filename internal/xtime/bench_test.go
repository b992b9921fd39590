package xtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
	xrate "golang.org/x/time/rate"
)

// limiter is what both limiters have in common.
type limiter interface {
	Allow() bool
	AllowN(t time.Time, n int) bool
	Wait(ctx context.Context) error
}

// BenchmarkRate measures calls that are granted at once, by one goroutine and by 64. To interleave
// the two packages, run it several times with -count 1.
func BenchmarkRate(b *testing.B) {
	const limit, burst = 1e9, 1 << 30
	ours, theirs := rate.NewLimiter(limit, burst), xrate.NewLimiter(limit, burst)
	now, ctx := time.Now(), context.Background()
	calls := func(l limiter, reserve func()) map[string]func() {
		return map[string]func(){
			"Allow":   func() { l.Allow() },
			"AllowN":  func() { l.AllowN(now, 1) },
			"Wait":    func() { _ = l.Wait(ctx) },
			"Reserve": reserve,
		}
	}
	packages := map[string]map[string]func(){
		"ours":   calls(ours, func() { ours.Reserve() }),
		"theirs": calls(theirs, func() { theirs.Reserve() }),
	}
	for _, call := range []string{"Allow", "AllowN", "Wait", "Reserve"} {
		for _, goroutines := range []int{1, 64} {
			for _, of := range []string{"theirs", "ours"} {
				do := packages[of][call]
				b.Run(fmt.Sprintf("%s/%d/%s", call, goroutines, of), func(b *testing.B) {
					b.ReportAllocs()
					if goroutines == 1 {
						for b.Loop() {
							do()
						}
						return
					}
					b.SetParallelism(goroutines)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							do()
						}
					})
				})
			}
		}
	}
}
