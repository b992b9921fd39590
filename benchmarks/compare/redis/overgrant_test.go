package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// race is a test of a bucket with 10 tokens that gets 10 a second. 64 goroutines take what they
// can: one in this process, and the others in one or more other processes.
type race struct {
	tally
	left        int // tokens that were still there after the race, or have come since
	least, most int // what a bucket allows in the time of the race
}

const (
	burst      = 10
	interval   = 100 * time.Millisecond // a token comes
	goroutines = 64
)

// run lets the goroutines race for a number of tokens that come after the burst. The race ends
// half an interval after the last token: the server has the clock of this machine, and the calls
// have this deadline. The time of the first call is only known to lie between two readings of the
// clock: least and most differ if the machine stalls for about half an interval there.
func run(t testing.TB, s *server, c Contender, procs, tokens int) (r race) {
	t.Helper()
	const key = "key"
	limit := tb.Limit{Capacity: burst, Tokens: int64(time.Second / interval), Per: time.Second}
	s.empty(t)
	all := startWorkers(t, procs, task{
		Addr: s.addr, Contender: c.Name, Key: key, Limit: limit,
		Goroutines: goroutines - 1, Endless: true,
	})
	l := open(t, s, c, limit)
	defer l.Close()
	connect(t.Context(), l, 1)

	before := s.now(t)
	r.call(t.Context(), l, key)
	after := s.now(t)
	finish := after.Add(time.Duration(tokens)*interval + interval/2)
	all.begin(t, finish)
	ctx, cancel := context.WithDeadline(t.Context(), finish)
	defer cancel()
	// The bucket loses tokens if it becomes full. It does not if after a grant the next decision
	// follows before one token has come, and after a refusal the next refusal follows before all
	// but one have come.
	full, last, spare, end := false, before, interval, after
	for end.Before(finish) {
		called, earlier := end, r.tally
		r.call(ctx, l, key)
		end = s.now(t)
		full = full || end.Sub(last) >= spare
		switch {
		case r.Failed > earlier.Failed:
		case r.Granted == earlier.Granted:
			last, spare = called, (burst-1)*interval
		case spare == interval:
			last = called
		}
	}
	r.add(all.end(t))
	r.left = drain(t, l, key)
	r.addAbandoned(l)

	// The approaches count in milliseconds and in floating point.
	const grain = 2 * time.Millisecond
	r.most = burst + int((finish.Sub(before)+grain)/interval)
	if !full {
		r.least = burst + int((finish.Sub(after)-grain)/interval)
	}
	return r
}

// check fails if an exact limiter granted more or fewer tokens than the bucket allows, or if calls
// failed that may not. The grants of the other limiters depend on the machine.
func (r race) check(t testing.TB, c Contender) {
	t.Helper()
	if sum := r.Granted + r.Late + r.left; c.Exact && (sum < r.least || r.Granted > r.most) {
		t.Errorf("%d tokens, %d late, %d left, want %d to %d",
			r.Granted, r.Late, r.left, r.least, r.most)
	}
	if r.Failed > 0 && !c.GivesUp {
		t.Errorf("%d calls failed: %s", r.Failed, r.Error)
	}
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
				t.Logf("%d calls, %d granted, %d late, %d failed, %d left; the bucket allows %d to %d",
					r.Calls, r.Granted, r.Late, r.Failed, r.left, r.least, r.most)
				r.check(t, c)
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
				r.check(b, c)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(r.Granted), "granted")
				b.ReportMetric(float64(r.most), "allowed")
				b.ReportMetric(float64(r.Failed), "failed")
				b.ReportMetric(float64(r.Calls), "calls")
			})
		}
	}
}
