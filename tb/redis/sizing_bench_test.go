package redis

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// BenchmarkServer measures what a decision costs the server: the time of its script, and the time
// of a processor with the connections included. 64 callers share 1,000 keys. Their calls are
// commands of their own, or share commands, or take from two buckets each and share commands. With
// "key", all calls are on one key.
func BenchmarkServer(b *testing.B) {
	for _, bb := range []struct {
		name  string
		limit tb.Limit
	}{
		{"grant", tb.Limit{Capacity: 1e9, Tokens: 1, Per: time.Microsecond}},
		{"grant-uneven", tb.Limit{Capacity: 1e6, Tokens: 1e6, Per: 100_000_007 * time.Microsecond}},
		{"refuse", tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}},
	} {
		for _, calls := range []string{"alone", "shared", "two", "key"} {
			b.Run(bb.name+"/"+calls, func(b *testing.B) { measureServer(b, bb.limit, bb.name, calls) })
		}
	}
}

func measureServer(b *testing.B, limit tb.Limit, name, calls string) {
	c := dial(b, redistest.Start(b))
	opts := []Option{WithMaxDenial(0)}
	if calls == "alone" {
		opts = append(opts, WithoutBatching())
	}
	l := newLimiter(b, c, limit, opts...)
	other := newLimiter(b, c, limit, append(opts, WithPrefix("other:"))...)
	take := func(key string) (bool, error) {
		if calls != "two" {
			d, err := l.Allow(b.Context(), key)
			return d.Allowed, err
		}
		all := []tb.Charge{newCharge(b, l, key, 1), newCharge(b, other, key, 1)}
		_, ok, err := TakeAll(b.Context(), time.Time{}, all, nil)
		return ok, err
	}
	keys := make([]string, 1000)
	for i := range keys { // new keys would not be refused
		keys[i] = "user:" + strconv.Itoa(i)
		if ok, err := take(keys[i]); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
	script, cpu := usage(b, c)
	var next atomic.Uint64
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for i := next.Add(37); pb.Next(); i++ {
			k := i % 1000
			if calls == "key" {
				k = 0
			}
			if ok, err := take(keys[k]); err != nil || ok == (name == "refuse") {
				b.Error(ok, err)
				return
			}
		}
	})
	scriptAfter, cpuAfter := usage(b, c)
	b.ReportMetric((scriptAfter-script)/float64(b.N), "script-µs/op")
	b.ReportMetric((cpuAfter-cpu)*1e6/float64(b.N), "core-µs/op")
}

// BenchmarkKeys measures the memory of a bucket whose name has 17 bytes.
func BenchmarkKeys(b *testing.B) {
	for b.Loop() {
		c := dial(b, redistest.Start(b))
		l := newLimiter(b, c, tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour})
		allow(b, l, "warm-up")
		before := figure(b, c, "memory", "used_memory")
		n := 100_000
		if testing.Short() {
			n = 1000
		}
		for i := range n {
			allow(b, l, "user:"+strconv.Itoa(1_000_000+i))
		}
		b.ReportMetric((figure(b, c, "memory", "used_memory")-before)/float64(n), "bytes/key")
	}
}

// usage returns the time of the scripts in µs, and the time of a processor in seconds.
func usage(b *testing.B, c rueidis.Client) (script, cpu float64) {
	b.Helper()
	script = figure(b, c, "commandstats", "cmdstat_evalsha:.*?usec")
	cpu = figure(b, c, "cpu", "used_cpu_sys") + figure(b, c, "cpu", "used_cpu_user")
	return script, cpu
}

func allow(b *testing.B, l *Limiter, key string) {
	if _, err := l.Allow(b.Context(), key); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFirstCalls measures how many of the first 64 calls of a process the failure policy
// decides, with the default timeout and a server that is a round trip away and has not seen the
// script: the median of the processes.
func BenchmarkFirstCalls(b *testing.B) {
	for _, load := range []struct {
		name          string
		callers, keys int
	}{{"keys", 64, 64}, {"key", 64, 1}, {"turns", 1, 1}} {
		for _, ms := range []time.Duration{0, 5, 12, 15, 20, 30} {
			trip := ms * time.Millisecond
			b.Run(load.name+"/"+trip.String(), func(b *testing.B) {
				var missed []uint64
				for range b.N {
					missed = append(missed, missedFirst(b, trip, load.callers, load.keys))
				}
				slices.Sort(missed)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(missed[len(missed)/2]), "missed")
			})
		}
	}
}

// missedFirst makes the first 64 calls of a process, and returns how many the policy has decided. A
// connection takes a round trip, beside the replies on it.
func missedFirst(b *testing.B, trip time.Duration, callers, keys int) uint64 {
	p := startProxy(b, redistest.Start(b).Addr)
	p.set(distant(trip))
	o, err := ParseAddress(p.addr)
	if err != nil {
		b.Fatal(err)
	}
	o.DialCtxFn = func(
		ctx context.Context, addr string, d *net.Dialer, _ *tls.Config,
	) (net.Conn, error) {
		<-time.After(trip)
		return d.DialContext(ctx, "tcp", addr)
	}
	c, err := NewClient(o)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	l := newLimiter(b, c, ample, byDefault)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range 64 / callers {
				if _, err := l.Allow(b.Context(), strconv.Itoa(i%keys)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	return l.Stats().PolicyRefused
}
