// Package publicbugs plants bugs of other limiters that were reported in public, and requires that
// tb/tbtest finds each of them: see docs/bugs.md.
package publicbugs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

// limiter is a limiter with one of the bugs.
type limiter struct {
	*mutex.Limiter[string]
	take    func(key string, cost float64) (tb.Decision, error)
	refills bool // a change of the limit fills the bucket a
}

func (l *limiter) Allow(_ context.Context, key string) (tb.Decision, error) { return l.take(key, 1) }

func (l *limiter) AllowN(_ context.Context, key string, cost float64) (tb.Decision, error) {
	return l.take(key, cost)
}

func (l *limiter) SetLimit(limit tb.Limit) error {
	if l.refills {
		defer l.Reset("a")
	}
	return l.Limiter.SetLimit(limit)
}

// bug plants a bug in a limiter, or in its clock.
type bug struct {
	name  string // in docs/bugs.md
	test  string // which finds it
	plant func(*limiter, tb.Settings)
	clock func(now func() time.Time) func() time.Time
}

var bugs = []bug{
	{name: "none"},
	{name: "a CAS that writes what it read", test: "ConcurrentAllowGrantsAtMostCapacity", plant: noCAS},
	{name: "check, then take", test: "ConcurrentAllowGrantsAtMostCapacity", plant: checkThenTake},
	{name: "a time that moves back", test: "BoundWithBackwardClock", clock: rewinding},
	{name: "a clock that is fast by a hundredth", test: "WaitIsExactOnBothSides", clock: fast},
	{name: "a cost that is cut to the burst", test: "CostAboveCapacityIsRefusedWithNever", plant: cut},
	{name: "eviction beside a full bucket", test: "FullBucketsAreEvictedFirst", plant: leastRecent},
	{name: "a change of the limit that refills", test: "SetLimitKeepsTokens", plant: refill},
}

// noCAS has the tokens and their time in two words. A caller that takes the one token that has come
// since swaps the number of tokens for the same number.
func noCAS(l *limiter, s tb.Settings) {
	var tokens, last atomic.Int64
	limit := l.Limit()
	tokens.Store(int64(limit.Capacity))
	last.Store(s.Now().UnixNano())
	l.take = func(string, float64) (d tb.Decision, _ error) {
		old, now := tokens.Load(), s.Now().UnixNano()
		supplied := (now - last.Load()) * limit.Tokens / int64(limit.Per)
		left := min(int64(limit.Capacity), old+supplied) - 1
		for left >= 0 && !d.Allowed {
			if d.Allowed = tokens.CompareAndSwap(old, left); !d.Allowed {
				old = tokens.Load()
				left = min(int64(limit.Capacity), old+supplied) - 1
			}
		}
		runtime.Gosched() // another caller may run here at any time
		if d.Allowed {
			last.Store(now)
		}
		return d, nil
	}
}

func checkThenTake(l *limiter, _ tb.Settings) {
	l.take = func(key string, cost float64) (tb.Decision, error) {
		d, err := l.Peek(context.Background(), key)
		runtime.Gosched()
		if d.Allowed {
			_, err = l.Limiter.AllowN(context.Background(), key, cost)
		}
		return d, err
	}
}

func cut(l *limiter, _ tb.Settings) {
	l.take = func(key string, cost float64) (tb.Decision, error) {
		return l.Limiter.AllowN(context.Background(), key, min(cost, float64(l.Limit().Capacity)))
	}
}

// leastRecent has a table that drops the key that was used least recently, whatever its bucket
// lacks.
func leastRecent(l *limiter, s tb.Settings) {
	l.Limiter, _ = mutex.New[string](l.Limit(), tb.WithClock(s.Now)) // without that bound
	keys, _ := lru.NewWithEvict(s.MaxKeys, func(key string, _ struct{}) { l.Forget(key) })
	l.take = func(key string, cost float64) (tb.Decision, error) {
		keys.Add(key, struct{}{})
		return l.Limiter.AllowN(context.Background(), key, cost)
	}
}

func refill(l *limiter, _ tb.Settings) { l.refills = true }

// rewinding is the time of a bucket that an older reading sets back: what is between the two is
// supplied again.
func rewinding(now func() time.Time) func() time.Time {
	var last time.Time
	var ahead time.Duration
	return func() time.Time {
		t := now()
		ahead += max(0, last.Sub(t))
		last = t
		return t.Add(ahead)
	}
}

func fast(now func() time.Time) func() time.Time {
	began := now()
	return func() time.Time { t := now(); return t.Add(t.Sub(began) / 100) }
}

// TestLimiter runs the contract on the limiter with the bug that TestBugsAreFound names.
func TestLimiter(t *testing.T) {
	for _, b := range bugs {
		if b.name != os.Getenv("BUG") {
			continue
		}
		tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
			s, err := tb.Apply(append([]tb.Option{tb.WithClock(time.Now)}, opts...)...)
			if err != nil {
				return nil, err
			}
			if b.clock != nil {
				opts = append(opts, tb.WithClock(b.clock(s.Now)))
			}
			inner, err := mutex.New[string](limit, opts...)
			if err != nil {
				return nil, err
			}
			l := &limiter{Limiter: inner}
			l.take = func(key string, cost float64) (tb.Decision, error) {
				return inner.AllowN(context.Background(), key, cost)
			}
			if b.plant != nil {
				b.plant(l, s)
			}
			return l, nil
		})
	}
}

// TestBugsAreFound requires that the test of each bug finds it, and passes without a bug, and that
// docs/bugs.md has both.
func TestBugsAreFound(t *testing.T) {
	document, err := os.ReadFile("../../docs/bugs.md")
	if err != nil {
		t.Fatal(err)
	}
	run := func(name, test string) []byte {
		child := exec.Command(os.Args[0], "-test.run=^TestLimiter$/^"+test+"$", "-test.v")
		child.Env = append(os.Environ(), "BUG="+name)
		output, _ := child.CombinedOutput()
		return output
	}
	for _, b := range bugs[1:] {
		t.Run(b.name, func(t *testing.T) {
			if out := run("none", b.test); !bytes.Contains(out, []byte("--- PASS: TestLimiter/"+b.test)) {
				t.Errorf("without a bug:\n%s", out)
			}
			if out := run(b.name, b.test); !bytes.Contains(out, []byte("--- FAIL: TestLimiter/"+b.test)) {
				t.Errorf("not found:\n%s", out)
			}
			row := "| " + b.name + " |"
			if _, rest, ok := strings.Cut(string(document), row); !ok ||
				!strings.Contains(strings.SplitN(rest, "\n", 2)[0], "`"+b.test+"` |") {
				t.Errorf("docs/bugs.md has no row %s that ends with %s", row, b.test)
			}
		})
	}
}
