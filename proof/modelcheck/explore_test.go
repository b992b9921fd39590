package modelcheck_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/atomic"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/sync"
)

// outcomes explores a program. It returns the sets of its histories, of its results with the
// final values of its variables, and of the final sums.
func outcomes(
	t *testing.T, build func(s *toy) [][]modelcheck.Call, o modelcheck.Options,
) (r modelcheck.Result, histories, results map[string]bool, sums map[uint64]bool) {
	t.Helper()
	histories, results, sums = make(map[string]bool), make(map[string]bool), make(map[uint64]bool)
	r = modelcheck.Explore(func() modelcheck.Program {
		s := newToy()
		return modelcheck.Program{
			Threads: build(s),
			Final: func(history [][]modelcheck.Returned) error {
				var order, result strings.Builder
				for _, calls := range history {
					for _, c := range calls {
						fmt.Fprint(&order, c.After, " ")
						fmt.Fprint(&result, c.Result, " ")
					}
				}
				fmt.Fprint(&result, s.x.Load(), s.z)
				if v, ok := s.m.Load("k"); ok {
					fmt.Fprint(&result, " map ", v.Load())
				}
				if v := s.p.Load(); v != nil {
					fmt.Fprint(&result, " pointer ", v.Load())
				}
				histories[order.String()+result.String()] = true
				results[result.String()] = true
				sums[s.x.Load()+s.z] = true
				return nil
			},
		}
	}, o)
	if r.Failure != nil {
		t.Fatalf("%s\n%s", r.Failure.Message, r.Failure.Trace)
	}
	return r, histories, results, sums
}

// TestEverySchedule explores programs whose number of schedules is known. Merging states and
// leaving out choices may not lose a result.
func TestEverySchedule(t *testing.T) {
	for _, p := range toys {
		all, want, results, sums := outcomes(t, p.threads,
			modelcheck.Options{Preemptions: -1, NoMerge: true})
		if p.schedules != 0 && all.Schedules != p.schedules {
			t.Errorf("%s: %d schedules, want %d", p.name, all.Schedules, p.schedules)
		}
		if p.outcomes != 0 && len(sums) != p.outcomes {
			t.Errorf("%s: outcomes %v, want %d", p.name, sums, p.outcomes)
		}
		merged, got, _, _ := outcomes(t, p.threads, modelcheck.Options{Preemptions: -1})
		if !maps.Equal(got, want) {
			t.Errorf("%s: merging states leaves %d of %d histories", p.name, len(got), len(want))
		}
		unreduced, _, every, _ := outcomes(t, p.threads,
			modelcheck.Options{Preemptions: -1, NoReduction: true})
		if !maps.Equal(results, every) {
			t.Errorf("%s: leaving out choices leaves %d of %d results",
				p.name, len(results), len(every))
		}
		t.Logf("%s: %d schedules, %d histories; merged: %d schedules, %d states; unreduced: %d states",
			p.name, all.Schedules, len(want), merged.Schedules, merged.States, unreduced.States)
	}
}

func TestMutualExclusion(t *testing.T) {
	for _, broken := range []bool{false, true} {
		var both bool
		r := modelcheck.Explore(func() modelcheck.Program {
			s := newToy()
			return modelcheck.Program{
				Threads: [][]modelcheck.Call{
					{do("enter", func() int { return s.enter(&s.x, &s.y, broken) })},
					{do("enter", func() int { return s.enter(&s.y, &s.x, broken) })},
				},
				Final: func(h [][]modelcheck.Returned) error {
					both = both || h[0][0].Result == 1 && h[1][0].Result == 1
					return nil
				},
			}
		}, modelcheck.Options{Preemptions: -1})
		if both != broken || r.Schedules == 0 {
			t.Errorf("broken %v: both entered %v in %d schedules", broken, both, r.Schedules)
		}
	}
}

// failures are programs that fail, with a part of the message.
var failures = []struct {
	name, message string
	program       func(s *toy) modelcheck.Program
}{
	{"deadlock", "deadlock", func(s *toy) modelcheck.Program {
		var other sync.Mutex
		other.Label("other")
		lock := func(a, b *sync.Mutex) modelcheck.Call {
			return do("lock both", func() int {
				a.Lock()
				defer a.Unlock()
				b.Lock()
				defer b.Unlock()
				return 0
			})
		}
		return modelcheck.Program{Threads: [][]modelcheck.Call{
			{lock(&s.mu, &other)}, {lock(&other, &s.mu)},
		}}
	}},
	{"waiting for another thread", "does not return", func(s *toy) modelcheck.Program {
		return modelcheck.Program{Threads: [][]modelcheck.Call{
			{do("spin", func() int {
				for s.x.Load() == 0 {
				}
				return 0
			})},
			{do("set", func() int { s.x.Store(1); return 0 })},
		}}
	}},
	{"a state between two steps", "x is 1", func(s *toy) modelcheck.Program {
		return modelcheck.Program{
			Threads: [][]modelcheck.Call{{do("twice", func() int { s.x.Add(1); s.x.Add(1); return 0 })}},
			Invariant: func() error {
				if s.x.Load() == 1 {
					return errors.New("x is 1")
				}
				return nil
			},
		}
	}},
	{"a lock in a callback", "callback", func(s *toy) modelcheck.Program {
		return modelcheck.Program{Threads: [][]modelcheck.Call{{do("compute", func() int {
			s.m.Compute("k", func(v *atomic.Uint64, _ bool) (*atomic.Uint64, bool) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return v, true
			})
			return 0
		})}}}
	}},
	{"something random", "does not do the same", func(s *toy) modelcheck.Program {
		return modelcheck.Program{Threads: slices.Repeat([][]modelcheck.Call{
			{do("random", func() int { s.x.Store(rand.Uint64()); return 0 })},
		}, 3)}
	}},
	{"a panic", "panic: it did", func(*toy) modelcheck.Program {
		call := do("panic", func() int { panic("it did") })
		return modelcheck.Program{Threads: [][]modelcheck.Call{{call}}}
	}},
	{"a panic of the invariant", "panic: it did", func(s *toy) modelcheck.Program {
		return modelcheck.Program{
			Threads:   [][]modelcheck.Call{{do("set", func() int { s.x.Store(1); return 0 })}},
			Invariant: func() error { panic("it did") },
		}
	}},
}

func TestFailuresAreFound(t *testing.T) {
	for _, f := range failures {
		r := modelcheck.Explore(func() modelcheck.Program { return f.program(newToy()) },
			modelcheck.Options{Preemptions: -1})
		if r.Failure == nil || !strings.Contains(r.Failure.Message, f.message) {
			t.Errorf("%s: %+v, want %q", f.name, r.Failure, f.message)
		}
	}
}

// TestPreemptionsAreBounded counts the schedules with a bounded number of preemptions.
func TestPreemptionsAreBounded(t *testing.T) {
	build := threads(2, 1, func(s *toy, _ int) int { return s.increment() })
	for bound, want := range []int{2, 4, 6} {
		r, _, _, _ := outcomes(t, build, modelcheck.Options{Preemptions: bound, NoMerge: true})
		if r.Schedules != want {
			t.Errorf("%d preemptions: %d schedules, want %d", bound, r.Schedules, want)
		}
	}
}
