package peers

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
	xrate "golang.org/x/time/rate"
)

// BenchmarkRate measures calls of package rate that are granted at once, beside x/time/rate. With
// -cpu 1,64 it has one goroutine, or 64. To interleave the two packages, run it several times with
// -count 1.
func BenchmarkRate(b *testing.B) {
	const limit, burst = 1e9, 1 << 30
	ours, theirs := rate.NewLimiter(limit, burst), xrate.NewLimiter(limit, burst)
	now, ctx := time.Now(), context.Background()
	for _, c := range []struct {
		call         string
		ours, theirs func()
	}{
		{"Allow", func() { ours.Allow() }, func() { theirs.Allow() }},
		{"AllowN", func() { ours.AllowN(now, 1) }, func() { theirs.AllowN(now, 1) }},
		{"Wait", func() { _ = ours.Wait(ctx) }, func() { _ = theirs.Wait(ctx) }},
		{"Reserve", func() { ours.Reserve() }, func() { theirs.Reserve() }},
	} {
		for of, do := range map[string]func(){"theirs": c.theirs, "ours": c.ours} {
			b.Run(c.call+"/"+of, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						do()
					}
				})
			})
		}
	}
}
