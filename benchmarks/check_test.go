package benchmarks

import (
	"math"
	"strings"
	"testing"
)

// A benchmark fails if its calls have not the answers of its load.
func TestWorkloadsCheckTheirAnswers(t *testing.T) {
	for _, load := range []string{"grant", "refuse"} {
		for _, answer := range []bool{true, false} {
			w := Workload{Load: load, Keys: 2, Dist: "uniform", Par: 2}
			traffic := &traffic{Workload: w, calls: w.calls(), position: new(int)}
			failed := false
			testing.Benchmark(func(b *testing.B) {
				if *traffic.position > 0 {
					return
				}
				for _, b.N = range []int{batch, 2 * batch} {
					traffic.run(b, func(string) bool { return answer })
				}
				failed = failed || b.Failed()
			})
			if want := answer == (load == "refuse"); failed != want {
				t.Errorf("%s, answer %v: the benchmark fails: %v, want %v", load, answer, failed, want)
			}
		}
	}
}

// The goroutines of a workload call each key equally often, or the first one call in seven.
func TestCallsHaveTheirDistribution(t *testing.T) {
	for dist, share := range map[string]float64{"uniform": 1.0 / 20_000, "zipf": 0.15} {
		counts := make(map[string]int)
		calls := Workload{Keys: 20_000, Dist: dist}.calls()()
		for _, key := range calls {
			counts[key]++
		}
		got := float64(counts[name(0)]) / float64(len(calls))
		if math.Abs(got-share) > 0.02 || dist == "uniform" && len(counts) != 20_000 {
			t.Errorf("%s: %.4f of the calls for one of %d keys", dist, got, len(counts))
		}
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

func TestFloorRefusesAndEvictsTheOldestKey(t *testing.T) {
	daily := newFloor(daily, 2)
	granted := ""
	for _, key := range []string{"a", "a", "a", "b", "c", "c", "a"} {
		if !daily(key) {
			key = "-"
		}
		granted += key
	}
	if granted != "a--bc-a" { // c evicts a
		t.Errorf("granted are %s", granted)
	}
}
