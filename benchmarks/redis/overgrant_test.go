package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// race is a test of a bucket with 10 tokens that gets 10 a second. 64 goroutines take what they
// can, in one process or divided among several.
type race struct {
	tally
	left        int // tokens that were still there after the race
	least, most int // what a bucket allows in the time of the race
}

const (
	burst      = 10
	interval   = 100 * time.Millisecond // a token comes
	goroutines = 64
)

// run lets the goroutines race for a number of tokens that come after the burst. The race ends
// half an interval after the last token, by the server's clock. The time of the first call and of
// the end are only known to lie between two readings of that clock: least and most differ if the
// machine stalls for about half an interval at one of them.
func run(t testing.TB, s *server, c Contender, procs, tokens int) (r race) {
	t.Helper()
	const key = "key"
	limit := tb.Limit{Capacity: burst, Tokens: int64(time.Second / interval), Per: time.Second}
	s.empty(t)
	all := startWorkers(t, procs, task{
		Addr: s.addr, Contender: c.Name, Key: key, Limit: limit, Goroutines: goroutines, Endless: true,
	})
	l := open(t, s, c, limit)
	connect(l, 1)

	before := s.now(t)
	r.call(context.Background(), l, key)
	l.Close()
	after := s.now(t)
	all.begin(t)
	s.wait(t, time.Duration(tokens)*interval+interval/2)
	end := s.now(t)
	r.add(all.end(t))
	l = open(t, s, c, limit)
	r.left = drain(t, l, key)
	l.Close()

	// The approaches count in milliseconds and in floating point.
	const grain = 2 * time.Millisecond
	r.least = burst + int((end.Sub(after)-grain)/interval)
	r.most = burst + int((s.now(t).Sub(before)+grain)/interval)
	return r
}

// TestOverGrant requires that the exact limiters grant what the bucket allows in three seconds,
// 40 tokens, and no fewer. It reports the other limiters.
func TestOverGrant(t *testing.T) {
	tokens, processes := 30, []int{1, 8}
	if testing.Short() {
		tokens, processes = 10, processes[:1]
	}
	for _, c := range Contenders {
		for _, procs := range processes {
			t.Run(fmt.Sprintf("%s/%d", c.Name, procs), func(t *testing.T) {
				t.Parallel()
				r := run(t, startServer(t), c, procs, tokens)
				t.Logf("%d calls, %d granted, %d failed, %d left; the bucket allows %d to %d",
					r.Calls, r.Granted, r.Failed, r.left, r.least, r.most)
				if sum := r.Granted + r.left; c.Exact && (sum < r.least || sum > r.most) {
					t.Errorf("%d tokens, want %d to %d", sum, r.least, r.most)
				}
				if r.Failed > 0 && !c.GivesUp {
					t.Errorf("%d calls failed: %s", r.Failed, r.Error)
				}
			})
		}
	}
}

// BenchmarkOverGrant reports the figures of TestOverGrant.
func BenchmarkOverGrant(b *testing.B) {
	tokens, processes := 30, []int{1, 2, 4, 8}
	if testing.Short() {
		tokens, processes = 1, []int{1, 8}
	}
	s := startServer(b)
	for _, procs := range processes {
		for _, c := range Contenders {
			b.Run(fmt.Sprintf("impl=%s/procs=%d", c.Name, procs), func(b *testing.B) {
				var r race
				for b.Loop() {
					r = run(b, s, c, procs, tokens)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(r.Granted), "granted")
				b.ReportMetric(float64(r.left), "left")
				b.ReportMetric(float64(r.most), "allowed")
				b.ReportMetric(float64(r.Failed), "failed")
				b.ReportMetric(float64(r.Calls), "calls")
			})
		}
	}
}
