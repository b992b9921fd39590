package fuzz

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var programs = flag.Int("programs", 20_000, "how many random programs to compare")

// compare runs p on both implementations and reports the first answer that differs.
func compare(t *testing.T, p program) []answer {
	t.Helper()
	var now [2]time.Time
	options := func(i int) []tb.Option {
		return []tb.Option{
			tb.WithClock(func() time.Time { return now[i] }),
			tb.WithMaxKeys(p.maxKeys), tb.WithOverflow(p.overflow),
		}
	}
	c, err := cas.New[string](p.limit, options(0)...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mutex.New[string](p.limit, options(1)...)
	if err != nil {
		t.Fatal(err)
	}
	got, want := p.run(casLimiter{c}, &now[0]), p.run(mutexLimiter{m}, &now[1])
	for i := range got {
		if got[i] != want[i] {
			p.calls = p.calls[:i+1]
			t.Fatalf("%v\ncas   %+v\nmutex %+v", p, got[i], want[i])
		}
	}
	return got
}

// programsByHand are programs for single rules of the contract. The fields of a call are
// {step, op, key, n, cost, other}.
var programsByHand = []struct {
	name string
	program
}{
	{"burst, refusal, wait", program{
		tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowN, "a", 10, 0, ""},
			{0, allowN, "a", 1, 0, ""},
			{199999999, allowN, "a", 1, 0, ""},
			{1, allowN, "a", 1, 0, ""},
			{time.Hour, allowN, "a", 11, 0, ""},
			{0, allowN, "a", 10, 0, ""},
		},
	}},
	{"late readings", program{
		tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{time.Minute, allowN, "a", 9, 0, ""},
			{-time.Second, allowN, "a", 1, 0, ""},
			{-time.Hour, allowN, "a", 1, 0, ""},
			{-100 * 365 * 24 * time.Hour, peek, "a", 0, 0, ""},
			{100*365*24*time.Hour + time.Hour + time.Second, allowN, "a", 1, 0, ""},
			{333333333, allowN, "a", 1, 0, ""},
			{1, allowN, "a", 1, 0, ""},
		},
	}},
	{"a fraction of a unit a nanosecond, for centuries", program{
		tb.Limit{Capacity: 2, Tokens: 1, Per: math.MaxInt64}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowCost, "a", 0, 1.999999, ""},
			{0, allowN, "a", 1, 0, ""},
			{200 * 365 * 24 * time.Hour, allowCost, "a", 0, 0.5, ""},
			{90 * 365 * 24 * time.Hour, allowN, "a", 1, 0, ""},
			{math.MaxInt64, allowN, "a", 1, 0, ""},
			{math.MinInt64, allowN, "a", 1, 0, ""},
		},
	}},
	{"a thousand units a nanosecond", program{
		tb.Limit{Capacity: 3, Tokens: 1, Per: 1000}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowN, "a", 3, 0, ""},
			{999, allowN, "a", 1, 0, ""},
			{1, allowN, "a", 1, 0, ""},
			{7, allowCost, "a", 0, 0.007, ""},
			{time.Hour, allowN, "a", 3, 0, ""},
			{time.Hour, allowN, "a", 3, 0, ""},
			{1, allowCost, "a", 0, 0.001001, ""},
		},
	}},
	{"the least capacity whose units are tokens", program{
		tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowCost, "a", 0, 0.1, ""},
			{0, allowCost, "a", 0, 0.1, ""},
		},
	}},
	{"full again at the last instant, and beyond", program{
		tb.Limit{Capacity: 3, Tokens: 1, Per: 1}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowN, "a", 3, 0, ""},
			{math.MaxInt64 - 3, allowN, "b", 3, 0, ""},
			{0, allowN, "b", 3, 0, ""},
			{1, allowN, "c", 3, 0, ""},
			{2, allowN, "d", 3, 0, ""},
			{0, allowN, "d", 1, 0, ""},
			{0, allowN, "e", 1, 0, ""},
		},
	}},
	{"full again beyond the last instant, slowly", program{
		tb.Limit{Capacity: 3, Tokens: 1, Per: 1000}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowN, "a", 3, 0, ""},
			{math.MaxInt64, allowN, "a", 3, 0, ""},
			{0, allowN, "a", 1, 0, ""},
		},
	}},
	{"two units of 292 years", program{
		tb.Limit{Capacity: 1, Tokens: 1, Per: math.MaxInt64}, 4, tb.ForgiveLeast,
		[]call{
			{0, allowCost, "a", 0, 0.000002, ""},
			{0, allowN, "a", 1, 0, ""},
		},
	}},
	{"full for a minute", program{
		tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 9, tb.ForgiveLeast,
		[]call{
			{0, allowN, "a", 1, 0, ""},
			{1, allowN, "b", 1, 0, ""},
			{time.Minute + time.Second - 2, allowN, "c", 1, 0, ""},
			{1, allowN, "d", 1, 0, ""},
			{0, allowN, "e", 1, 0, ""},
			{1, allowN, "f", 1, 0, ""},
		},
	}},
	{"ties go to the first inserted", program{
		tb.Limit{Capacity: 5, Tokens: 1, Per: time.Second}, 3, tb.ForgiveLeast,
		[]call{
			{0, allowN, "a", 2, 0, ""},
			{0, allowN, "b", 2, 0, ""},
			{0, allowN, "c", 2, 0, ""},
			{0, allowN, "d", 2, 0, ""},
			{0, peek, "a", 0, 0, ""},
			{0, peek, "b", 0, 0, ""},
			{0, allowN, "e", 1, 0, ""},
			{0, peek, "b", 0, 0, ""},
			{0, allowN, "f", 1, 0, ""},
			{0, peek, "e", 0, 0, ""},
		},
	}},
	{"back in time after eviction", program{
		tb.Limit{Capacity: 5, Tokens: 1, Per: time.Second}, 1, tb.RefuseNew,
		[]call{
			{0, allowN, "a", 5, 0, ""},
			{time.Minute, allowN, "b", 1, 0, ""},
			{time.Second, allowN, "a", 5, 0, ""},
			{-30 * time.Second, allowN, "b", 1, 0, ""},
			{40 * time.Second, allowN, "b", 5, 0, ""},
			{-20 * time.Second, reset, "b", 0, 0, ""},
			{0, allowN, "b", 5, 0, ""},
			{19 * time.Second, allowN, "b", 1, 0, ""},
			{2 * time.Second, allowN, "b", 1, 0, ""},
		},
	}},
	{"both or neither", program{
		tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{0, takeAll, "a", 0, 4, "b"},
			{0, takeAll, "a", 0, 4, "b"},
			{0, takeAll, "a", 0, 4, "c"},
			{time.Second, takeAll, "c", 0, 4, "c"},
			{time.Second, takeAll, "c", 0, 5, "c"},
			{0, allowN, "c", 7, 0, ""},
			{-time.Hour, takeAll, "d", 0, 8, "d"},
			{0, allowN, "d", 9, 0, ""},
			{0, takeAll, "d", 0, 0, "d"},
		},
	}},
}

func TestImplementationsAgreeOnProgramsByHand(t *testing.T) {
	for _, p := range programsByHand {
		t.Run(p.name, func(t *testing.T) { compare(t, p.program) })
	}
}

func FuzzCASvsMutex(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		in := input(data)
		compare(t, in.program(maxKeys))
	})
}

// maxKeys is so small that no insert meets more than 16 stale stamps. So eviction is exact in
// every implementation.
const maxKeys = 12

func TestImplementationsAgreeOnRandomPrograms(t *testing.T) {
	programs := *programs
	var granted, refused, waits, undone, evicted, forgiven, refusedNew int
	rng := rand.NewChaCha8([32]byte{1})
	for range programs {
		in := make(input, 500)
		_, _ = rng.Read(in)
		answers := compare(t, in.program(maxKeys))
		for _, a := range answers {
			switch {
			case a.decision.Allowed:
				granted++
				if a.other != (tb.Decision{}) && !a.other.Allowed {
					undone++
				}
			case a.err == nil:
				refused++
				if a.decision.RetryAfter < tb.Never {
					waits++
				}
			}
		}
		last := answers[len(answers)-1].stats
		evicted += int(last.EvictedFull)
		forgiven += int(last.EvictedInDebt)
		refusedNew += int(last.RefusedNew)
	}
	// Random programs that reach only half of the contract prove little.
	t.Logf("granted %d, refused %d (%d with a wait), undone %d, "+
		"evicted full %d, in debt %d, new refused %d",
		granted, refused, waits, undone, evicted, forgiven, refusedNew)
	for _, n := range []int{granted, refused, waits, undone * 10, evicted, forgiven, refusedNew} {
		if n < programs/4 {
			t.Errorf("the programs reach one of these outcomes too rarely")
		}
	}
}
