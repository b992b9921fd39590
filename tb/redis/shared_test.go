package redis

import (
	"flag"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var contestTime = flag.Duration("contest", 200*time.Millisecond,
	"time by the server's clock in which processes take from one bucket")

// contest lets eight processes take from one bucket. At last the test takes what is left, so that
// the server refuses the last call. It returns all calls.
type contest func(t *testing.T, k task) []event

const contestants = 8

// compete is a contest in which many goroutines take what they can for some time. In the middle of
// it one process may be killed.
func compete(d time.Duration, kill bool) contest {
	return func(t *testing.T, k task) []event {
		k.Goroutines, k.Costs = 8, []float64{0.5, 1, 1, 2.5}
		ps := startProcesses(t, contestants, k)
		ps.begin(t, 0)
		ps.pass(t, d/2)
		ps.awaitGrants(t)
		var victim *process
		if kill {
			victim = ps.all[0]
			if err := victim.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		ps.pass(t, d/2)
		return append(ps.end(t, victim), ps.drain(t, k)...)
	}
}

// drain takes the tokens of the bucket until the server refuses one. Each command takes many at one
// instant, because a slow machine would find a new token with each command.
func (ps *processes) drain(t *testing.T, k task) (events []event) {
	t.Helper()
	w := worker{task: k}
	l := newLimiter(t, ps.server, k.Limit, append(w.options(), WithMaxDenial(0))...)
	m := l.layout.Load()
	for {
		before := time.Now().UnixMicro()
		s, err := l.execUnits(t.Context(), sharedKey, slices.Repeat([]uint64{m.scale}, 200)...)
		if err != nil {
			t.Fatal(err)
		}
		after := time.Now().UnixMicro() + 1
		for range 200 {
			e := event{before, after, int64(s.now), int64(m.scale), m.take(&s, m.scale).Allowed}
			if events = append(events, e); !e.Granted {
				return events
			}
		}
	}
}

const (
	// untilRefused is more calls than a correct limiter grants.
	untilRefused = 10_000

	// After untilLeased calls, a process has just taken a lease of 16 tokens, and leased tokens in
	// all, by commands of 1, 1+1, 1+2, 1+4, 1+8 and 1+16.
	untilLeased = 21
	leased      = 21 + 16
)

// burst is a contest in which each process makes some calls, and takes what it can when as many
// tokens have come as the processes have leased.
func burst(calls int) contest {
	return func(t *testing.T, k task) []event {
		k.Goroutines, k.Costs = 1, []float64{1}
		pause := contestants * leased * k.Limit.Per / time.Duration(k.Limit.Tokens)
		for {
			ps := startProcesses(t, contestants, k)
			ps.begin(t, calls)
			ps.await(t)
			ps.pass(t, pause)
			ps.begin(t, untilRefused)
			ps.await(t)
			events := ps.end(t, nil)
			if k.Lease <= pause || within(events, k.Lease) { // otherwise the machine was too slow
				return append(events, ps.drain(t, k)...)
			}
		}
	}
}

// within reports whether all events happened within d.
func within(events []event, d time.Duration) bool {
	first, last := int64(math.MaxInt64), int64(0)
	for _, e := range events {
		first, last = min(first, e.Before), max(last, e.After)
	}
	return last-first < d.Microseconds()
}

// verdict is what an audit of a contest finds, in tokens.
type verdict struct {
	grants, leased int
	skewed         int     // decisions of the server at a time outside of their calls
	excess         float64 // the most above Capacity + rate·interval, negative if all are below

	// Without leases:
	early            int     // refusals although the ideal bucket could pay the cost and a unit
	granted, allowed float64 // from the first grant to the last refusal
	lost             float64 // came while the ideal bucket was full, and is not in allowed
}

// skew is by how many µs the server's clock may differ from the clock of this machine. They are the
// same for Redis. Valkey 9.1 has its own one, which was ahead by up to 47 µs.
const skew = 1000

// judge audits the calls of a contest. The server reads the clock of this machine. So a decision of
// the server lies between the readings around its call, and a lease has granted a call at some time
// between these readings.
func judge(t *testing.T, k task, events []event) (v verdict) {
	t.Helper()
	m, err := newLayout(k.Limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	var grants, refusals []span
	for _, e := range events {
		s := span{e.Before, e.After, e.Units}
		switch {
		case e.Now == 0:
		case e.Now < e.Before-skew || e.Now > e.After+skew:
			v.skewed++
		default:
			s.from, s.to = e.Now, e.Now
		}
		if !e.Granted {
			refusals = append(refusals, s)
			continue
		}
		grants = append(grants, s)
		if e.Now == 0 {
			v.leased++
		}
	}
	v.grants = len(grants)
	a := newAudit(m, grants)
	v.excess = a.inTokens(a.excess())
	if k.Lease > 0 {
		return v
	}
	end := int64(0)
	for _, r := range refusals {
		end = max(end, r.to)
		if a.least(r.from, r.to) >= a.amount(r.units+1) {
			v.early++
		}
	}
	v.granted, v.lost = a.inTokens(a.granted()), a.inTokens(a.lost)
	v.allowed = a.inTokens(a.full()+a.supply(end-grants[0].from)) - v.lost
	return v
}

func quantum(limit tb.Limit) float64 { return max(1e-6, float64(limit.Capacity)/leastUnits) }

var (
	thousand = tb.Limit{Capacity: 2000, Tokens: 1000, Per: 997 * time.Millisecond}
	forty    = tb.Limit{Capacity: 5, Tokens: 40, Per: 1001 * time.Millisecond}
	bursty   = tb.Limit{Capacity: 200, Tokens: 1000, Per: 997 * time.Millisecond} // full in a pause

	// The bound has room for more than the leases of a burst, which live longer than the burst.
	longLeases = task{
		Limit: tb.Limit{Capacity: 2000, Tokens: 500, Per: time.Second}, Lease: 2 * time.Second,
	}
	// The bound has room for less than the leases of a burst, which end before the burst.
	// They must be slow for a slow machine to drain the bucket.
	shortLeases = task{
		Limit: tb.Limit{Capacity: 500, Tokens: 250, Per: time.Second},
		Lease: 20 * time.Millisecond,
	}
)

// In no interval, processes are granted more than the bound. In all, they are granted what the
// limit allows, less a part of a token. Of the 5000 tokens of a contest of 3 s this is more than
// 99.9 %.
//
// If the machine stalls, the bucket may become full. The limit does not allow what is lost then,
// and no call may be refused meanwhile.
func TestProcessesShareABucket(t *testing.T) {
	d := *contestTime
	leases := task{Limit: thousand, Lease: 200 * time.Millisecond}
	for _, c := range []struct {
		name     string
		task     task
		contest  contest
		complete bool // no token is in a lease or in a process that was killed
	}{
		{"batches", task{Limit: thousand}, compete(d, false), true},
		{"small capacity", task{Limit: forty}, compete(d, false), true},
		{"without batching", task{Limit: thousand, Alone: true}, compete(d, false), true},
		{"bursts", task{Limit: bursty}, burst(untilRefused), true},
		{"leases", leases, compete(d, false), false},
		{"long leases", longLeases, burst(untilLeased), false},
		{"short leases", shortLeases, burst(untilLeased), false},
		{"killed", task{Limit: thousand}, compete(d, true), false},
		{"killed with leases", leases, compete(d, true), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(t, c.task, c.contest(t, c.task))
			t.Logf("%+v", v)
			if v.skewed > 0 {
				t.Errorf("%d decisions at a time outside of their calls", v.skewed)
			}
			if most := quantum(c.task.Limit); v.excess > most {
				t.Errorf("%v tokens above the bound, want at most %v", v.excess, most)
			}
			if c.task.Lease > 0 && v.leased == 0 {
				t.Error("no lease has granted a call")
			}
			if !c.complete {
				return
			}
			if v.early > 0 {
				t.Errorf("%d refusals although the bucket could pay", v.early)
			}
			if v.allowed-v.granted >= 1+quantum(c.task.Limit) {
				t.Errorf("%v tokens granted, want %v less a part of one", v.granted, v.allowed)
			}
		})
	}
}
