package benchmarks

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// A benchmark must fail if its calls are not the workload of its name.
func TestWorkloadsCheckThemselves(t *testing.T) {
	always := func(string) bool { return true }
	never := func(string) bool { return false }
	uniform := Workload{Load: "grant", Keys: 20_000, Dist: "uniform", Par: 1}
	zipf := Workload{Load: "grant", Keys: 20_000, Dist: "zipf", Par: 1}
	oneKey := func() []string { return []string{name(7), name(7)} }
	for _, c := range []struct {
		what  string
		w     Workload
		calls func() []string
		allow func(string) bool
		fails bool
	}{
		{"grants", uniform, nil, always, false},
		{"grants that are refused", uniform, nil, never, true},
		{"refusals", Workload{Load: "refuse", Keys: 1, Dist: "uniform", Par: 2}, nil, never, false},
		{"refusals that are granted", Workload{Load: "refuse", Keys: 1, Par: 2}, nil, always, true},
		{"one key instead of many", uniform, oneKey, always, true},
		{"a distribution", zipf, nil, always, false},
		{"the same number of calls of each key", zipf, uniform.calls(), always, true},
		{"a mix of grants only", Workload{Load: "mix", Keys: 64, Par: 1}, nil, always, true},
		{"a mix of refusals only", Workload{Load: "mix", Keys: 64, Par: 1}, nil, never, true},
		{"a mix", Workload{Load: "mix", Keys: 4096, Par: 1}, nil, ticking(brief), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			traffic := &traffic{Workload: c.w, calls: c.w.calls(), position: new(int)}
			if c.calls != nil {
				traffic.calls = c.calls
			}
			if got := fails(traffic, c.allow); got != c.fails {
				t.Errorf("the benchmark fails: %v, want %v", got, c.fails)
			}
		})
	}
}

// fails reports whether a benchmark of the traffic fails. It makes enough calls to judge a
// mix.
func fails(traffic *traffic, allow func(string) bool) (failed bool) {
	testing.Benchmark(func(b *testing.B) {
		if failed || *traffic.position > 0 {
			return
		}
		for _, b.N = range []int{250, 2 * judgedCalls} {
			traffic.run(b, allow)
		}
		failed = b.Failed()
	})
	return failed
}

// ticking returns a limiter whose clock advances with each call.
func ticking(limit tb.Limit) func(string) bool {
	now := time.Unix(0, 0)
	l := must(cas.New[string](limit))
	return func(key string) bool {
		now = now.Add(100 * time.Nanosecond)
		d, err := l.AllowAt(now, key, 1)
		return err == nil && d.Allowed
	}
}

func TestFillFailsOnRefusals(t *testing.T) {
	filled := true
	testing.Benchmark(func(b *testing.B) {
		Workload{Load: "grant", Keys: 3}.fill(b, func(key string) bool {
			return !strings.HasSuffix(key, "1")
		})
		filled = false
	})
	if !filled {
		t.Error("fill ignored a refusal")
	}
}

func TestFloorSpacesGrantsAndEvictsTheOldestKey(t *testing.T) {
	daily := newFloor(daily, 2)
	for i, want := range []bool{true, false, false} {
		if got := daily("a"); got != want {
			t.Errorf("call %d of a: %v, want %v", i, got, want)
		}
	}
	if !daily("b") || !daily("c") || daily("c") {
		t.Error("b and c were not granted exactly one call each")
	}
	if !daily("a") {
		t.Error("a was refused: the oldest key was not evicted")
	}
	spaced := newFloor(tb.Limit{Capacity: 2, Tokens: 1, Per: time.Nanosecond}, 2)
	if !spaced("a") {
		t.Error("the first call was refused")
	}
}
