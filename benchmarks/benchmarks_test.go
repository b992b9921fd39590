package benchmarks

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

func BenchmarkAllow(b *testing.B) { Run(b, Own) }

// BenchmarkCaller measures what a caller can save: the clock reading if it has the time, and
// the string if its key is an address. Without a key it has one bucket.
func BenchmarkCaller(b *testing.B) {
	key, addr := "192.0.2.123", netip.MustParseAddr("192.0.2.123")
	ctx, now := context.Background(), time.Now()
	strings := must(cas.New[string](generous))
	addrs := must(cas.New[netip.Addr](generous))
	bucket := must(cas.NewBucket(generous))
	granted := func(d tb.Decision, _ error) bool { return d.Allowed }
	for _, c := range []struct {
		name string
		call func() bool
	}{
		{"key=string/time=read", func() bool { return granted(strings.Allow(ctx, key)) }},
		{"key=string/time=given", func() bool { return granted(strings.AllowAt(now, key, 1)) }},
		{"key=addr/time=read", func() bool { return granted(addrs.Allow(ctx, addr)) }},
		{"key=addr/time=given", func() bool { return granted(addrs.AllowAt(now, addr, 1)) }},
		{"key=none/time=read", func() bool { return bucket.Allow().Allowed }},
		{"key=formatted/time=read", func() bool { return granted(strings.Allow(ctx, addr.String())) }},
	} {
		b.Run("impl=cas/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			grants := 0
			for b.Loop() {
				if c.call() {
					grants++
				}
			}
			if grants != b.N {
				b.Errorf("%d of %d granted", grants, b.N)
			}
		})
	}
	b.Run("impl=clock/key=none/time=read", func(b *testing.B) {
		start := time.Now()
		var sum time.Duration
		for b.Loop() {
			sum += time.Since(start)
		}
		if sum == 0 {
			b.Error("the clock did not advance")
		}
	})
}

func BenchmarkMemory(b *testing.B) { Memory(b, Own) }

func BenchmarkFlood(b *testing.B) { Flood(b, Own) }
