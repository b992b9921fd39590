package adapt_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"
)

var everything = flag.Bool("all", false, "simulate all scenarios: takes some seconds")

// The tables of the guide have the scores of runs with this seed.
const guideSeed = 1

// TestGoal requires, in each phase, 95 % of the goodput of the best fixed limit for that phase, and
// from 10 s after each change on a p99 within 1.5 targets. The guide has the scores.
func TestGoal(t *testing.T) {
	guide, err := os.ReadFile("../docs/adaptive.md")
	if err != nil {
		t.Fatal(err)
	}
	list, seeds := scenarios(), []uint64{guideSeed, 0}
	if !*everything {
		list, seeds = list[:2], seeds[:1]
	}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds {
				got := simulate(&s, seed).score(bestFixed(&s, seed))
				if !got.atLeast(goal(&s)) {
					t.Errorf("seed %d: %+v, want at least %+v", seed, got, goal(&s))
				}
				if row := got.row(s.title); seed == guideSeed && runtime.GOARCH == "amd64" &&
					!bytes.Contains(guide, []byte(row)) { // elsewhere the last digit may differ
					t.Errorf("docs/adaptive.md lacks the row\n%s", row)
				}
			}
		})
	}
}

func goal(s *scenario) score {
	g := score{goodput: 0.95, settled: 0.95, p99: s.target * 3 / 2, fairness: 0.97}
	switch s.name {
	case "attack": // the attacker decides the p99; a trial costs goodput
		g.goodput, g.p99 = 0.85, s.slowTime
	case "small": // few answers show a p99 badly
		g.p99 = s.target * 7 / 4
	}
	return g
}

func (s score) atLeast(g score) bool {
	return s.goodput >= g.goodput && s.settled >= g.settled && s.p99 <= g.p99 &&
		s.fairness >= g.fairness
}

// row returns the row of the guide with a score.
func (s score) row(title string) string {
	converge := "never"
	if s.converge < never {
		converge = fmt.Sprintf("%.0f s", s.converge.Seconds())
	}
	return fmt.Sprintf("| %s | %.0f %% | %d ms | %s |\n", title, 100*s.goodput,
		s.p99.Round(time.Millisecond).Milliseconds(), converge)
}

func TestRunsWithOneSeedAreEqual(t *testing.T) {
	s := scenarios()[3] // with two clients
	s.join = time.Second
	for i := range s.phases {
		s.phases[i].length = 4 * time.Second
	}
	one := simulate(&s, 5)
	if !reflect.DeepEqual(one, simulate(&s, 5)) {
		t.Error("two runs differ")
	}
	if reflect.DeepEqual(one.samples, simulate(&s, 6).samples) {
		t.Error("runs with different seeds are equal")
	}
}

// TestDownstream checks the model: below the capacity it serves all requests, at about the time of
// service. Above the capacity the queue grows until clients leave.
func TestDownstream(t *testing.T) {
	s := scenarios()[0]
	s.phases = []phase{{length: 20 * time.Second, workers: 1, speed: 1, demand: 2}}
	for _, c := range []struct {
		rate     float64
		goodput  float64
		min, max time.Duration // of the p99
	}{
		{500, 500, 50 * time.Millisecond, 100 * time.Millisecond},
		{1000, 1000, 50 * time.Millisecond, 500 * time.Millisecond},
		{1100, 0, time.Second, time.Second},
	} {
		t.Run(fmt.Sprint(c.rate), func(t *testing.T) {
			good, p99 := simulateFixed(&s, 1, c.rate).between(15*time.Second, 20*time.Second)
			if math.Abs(good-c.goodput) > 20 || p99 < c.min || p99 > c.max {
				t.Errorf("goodput %v, p99 %v, want %v and a p99 of %v to %v",
					good, p99, c.goodput, c.min, c.max)
			}
		})
	}
}

func TestBestFixedKeepsTheTarget(t *testing.T) {
	s := scenarios()[9] // the fastest
	best := bestFixed(&s, 1)
	if len(best) != 2 { // the first and the last phase are equal
		t.Fatalf("%d phases, want 2", len(best))
	}
	for p, goodput := range best {
		if c := s.capacity(p); goodput < 0.85*c || goodput > 1.01*c {
			t.Errorf("goodput %v of a capacity of %v, want most of it", goodput, c)
		}
	}
}
