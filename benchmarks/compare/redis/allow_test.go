package redis

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var (
	// generous is never reached, and slow enough that no bucket becomes full again.
	generous = tb.Limit{Capacity: 1_000_000_000, Tokens: 1000, Per: time.Second}
	// modest refuses nearly all calls on one key.
	modest = tb.Limit{Capacity: 10, Tokens: 10, Per: time.Second}
)

// BenchmarkAllow measures decisions. In hot_key all goroutines use one key, in per_user each has
// a key of its own, and no call is refused. In refuse all goroutines use one key whose bucket is
// empty.
func BenchmarkAllow(b *testing.B) {
	s := startServer(b)
	for _, load := range []string{"hot_key", "per_user", "refuse"} {
		for _, par := range []int{1, 2, 16, 64, 256} {
			for _, c := range Contenders {
				b.Run(fmt.Sprintf("impl=%s/load=%s/par=%d", c.Name, load, par), func(b *testing.B) {
					measure(b, s, c, load, par)
				})
			}
		}
	}
}

func measure(b *testing.B, s *server, c Contender, load string, par int) {
	limit, key := generous, on("key")
	switch load {
	case "per_user":
		key = eachItsOwn(par)
	case "refuse":
		limit = modest
	}
	s.empty(b)
	l := open(b, s, c, limit)
	defer l.Close()
	connect(b.Context(), l, par)
	if load == "refuse" {
		drain(b, l, "key")
	}
	s.do(b, "CONFIG", "RESETSTAT")
	b.ReportAllocs()
	b.ResetTimer()
	sum := crowd(b.Context(), l, par, key, calls(b.N, par))
	b.StopTimer()
	report(b, s, c, sum)
	check(b, c, load, sum)
}

// report adds what the server counted, and the share of the calls that failed.
func report(b *testing.B, s *server, c Contender, sum tally) {
	b.Helper()
	used, n := s.usage(b, c), float64(sum.Calls)
	b.ReportMetric(float64(used.trips)/n, "trips/op")
	b.ReportMetric(float64(used.inside.Nanoseconds())/n, "server-ns/op")
	b.ReportMetric(float64(sum.Failed)/n, "errors/op")
}

// check fails a benchmark that has measured another load.
func check(b *testing.B, c Contender, load string, sum tally) {
	b.Helper()
	const judged = 100 // fewer calls may all be made when a token has come
	switch {
	case sum.Calls != b.N:
		b.Errorf("%d calls, want %d", sum.Calls, b.N)
	case sum.Failed > 0 && !c.GivesUp:
		b.Errorf("%d of %d calls failed: %s", sum.Failed, sum.Calls, sum.Error)
	case load != "refuse" && sum.Granted+sum.Failed < sum.Calls:
		b.Errorf("%d of %d calls granted, %d failed", sum.Granted, sum.Calls, sum.Failed)
	case load == "refuse" && sum.Calls >= judged && 2*sum.Granted > sum.Calls:
		b.Errorf("%d of %d calls granted, want few", sum.Granted, sum.Calls)
	}
}

func open(tb testing.TB, s *server, c Contender, limit tb.Limit) Limiter {
	tb.Helper()
	l, err := c.Open(s.addr, limit)
	if err != nil {
		tb.Fatalf("%s: %v", c.Name, err)
	}
	return l
}

// connect makes a call from each of par goroutines, on other keys than the benchmarks use.
func connect(ctx context.Context, l Limiter, par int) {
	crowd(ctx, l, par, func(g, _ int) string { return "connect-" + strconv.Itoa(g) }, calls(par, par))
}

// drain takes the tokens of a key, and returns how many it took.
func drain(tb testing.TB, l Limiter, key string) int {
	tb.Helper()
	const most = 1000
	for taken := range most {
		granted, err := l.Allow(context.Background(), key)
		if err != nil {
			tb.Fatal(err)
		}
		if !granted {
			return taken
		}
	}
	tb.Fatalf("%d calls were granted", most)
	return most
}

// BenchmarkKeys reports the server's memory for each of many keys, whose buckets lack tokens.
// A second call on each key lets the server finish the growth of its table.
func BenchmarkKeys(b *testing.B) {
	keys := 100_000
	if testing.Short() {
		keys = 1000
	}
	key := func(_, call int) string { return fmt.Sprintf("user-%09d", call) }
	s := startServer(b)
	for _, c := range Contenders {
		b.Run("impl="+c.Name, func(b *testing.B) {
			perKey := 0.0
			for b.Loop() {
				s.empty(b)
				l := open(b, s, c, tb.Limit{Capacity: 100, Tokens: 1, Per: time.Minute})
				connect(b.Context(), l, connections)
				before := s.memory(b)
				for range 2 {
					sum := crowd(b.Context(), l, connections, key, calls(keys, connections))
					if sum.Granted < keys {
						b.Fatalf("%d of %d calls granted: %s", sum.Granted, keys, sum.Error)
					}
				}
				perKey = float64(s.memory(b)-before) / float64(keys)
				l.Close()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(perKey, "B/key")
		})
	}
}
