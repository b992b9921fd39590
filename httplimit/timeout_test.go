package httplimit

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// stuck is a Charger that blocks at one of its steps until released is closed.
type stuck struct {
	charging
	when     string
	released chan struct{}
}

func (s stuck) wait(step string) {
	if s.when == step {
		<-s.released
	}
}

func (s stuck) Charge(key string, cost float64) (tb.Charge, error) {
	s.wait("charge")
	c, err := s.charging.Charge(key, cost)
	return stuckCharge{c, s}, err
}

type stuckCharge struct {
	tb.Charge
	stuck
}

func (c stuckCharge) Peek(t time.Time) (tb.Decision, error) {
	c.wait("check")
	return c.Charge.Peek(t)
}

func (c stuckCharge) Take(t time.Time) (tb.Decision, error) {
	c.wait("take")
	return c.Charge.Take(t)
}

func (c stuckCharge) Cancel() {
	c.wait("undo")
	c.Charge.Cancel()
}

func (c stuckCharge) Level(t time.Time) (tb.Level, error) {
	c.wait("level")
	return c.Charge.(leveler).Level(t)
}

// stuckSite has two rules with Chargers, of which the second blocks, and takes tokens of mutex.
func stuckSite(t *testing.T, when string, opts ...Option) (*site, chan struct{}, *[]error) {
	released, errs := make(chan struct{}), new([]error)
	slow := oneRule("[]", `"rps": 0.1, "burst": 5`)
	s := newSite(t, jsonRules("", jsonRule("first", "[]", 5, ""), slow), append(opts,
		WithHooks(Hooks{Error: func(_ *http.Request, e Event) { *errs = append(*errs, e.Err) }}),
		WithLimiter(func(r Rule) (tb.Limiter, error) {
			l, err := mutex.New[string](r.Limit, tb.WithClock(func() time.Time {
				return time.Unix(1_800_000_000, 0)
			}))
			if r.Name == "r" {
				return stuck{charging{l}, when, released}, err
			}
			return charging{l}, err
		}))...)
	return s, released, errs
}

// A limiter that blocks holds no request for longer than the time limit, and what it takes later
// is given back.
func TestLimiterThatBlocks(t *testing.T) {
	for _, when := range []string{"charge", "check", "take", "level"} {
		for _, closed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				opts := []Option{WithTimeout(3 * time.Second)}
				want := http.StatusOK
				if closed {
					opts, want = append(opts, WithFailClosed()), http.StatusServiceUnavailable
				}
				s, released, errs := stuckSite(t, when, opts...)
				start := time.Now()
				w := s.get()
				if waited := time.Since(start); waited != 3*time.Second {
					t.Errorf("%s: the request took %v", when, waited)
				}
				if when == "level" { // the decision is made
					want = http.StatusOK
				} else if len(*errs) != 1 || !errors.Is((*errs)[0], context.DeadlineExceeded) {
					t.Errorf("%s: errors %v", when, *errs)
				}
				if w.Code != want {
					t.Errorf("%s: status %d, want %d", when, w.Code, want)
				}
				close(released)
				synctest.Wait()
				left := 5
				if when == "level" {
					left--
				}
				for _, e := range s.Explain(request()) {
					if e.Remaining != left-1 || e.Level.Tokens != float64(left) {
						t.Errorf("%s: %s is charged: %+v", when, e.Rule, e)
					}
				}
				if n := s.late.Load(); n != 0 {
					t.Errorf("%s: %d calls are late", when, n)
				}
			})
		}
	}
}

// A Cancel that blocks holds the request no longer than the time limit, and takes place later.
func TestUndoThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, released, _ := stuckSite(t, "undo")
		c := s.begin(request())
		c.findRules()
		e := &c.entries[1]
		c.prepare(e)
		if _, err := e.charge.Take(s.now); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		e.charge.Cancel()
		if waited := time.Since(start); waited != DefaultTimeout {
			t.Errorf("Cancel took %v", waited)
		}
		if _, err := e.external.Level(s.now); err == nil {
			t.Error("a charge that is being undone is asked for its level")
		}
		close(released)
		synctest.Wait()
		if e := s.Explain(request())[1]; e.Remaining != 4 {
			t.Errorf("%+v", e)
		}
	})
}

// Limiters that never answer do not cost a goroutine for each request.
func TestLateCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, released, errs := stuckSite(t, "take")
		for s.late.Load() < maxLate {
			s.get()
			synctest.Wait()
		}
		before := len(*errs)
		start := time.Now()
		for range 100 {
			s.get()
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("100 more requests took %v", waited)
		}
		if n := len(*errs) - before; n != 100 || s.served != len(*errs) {
			t.Errorf("%d errors, %d served", n, s.served)
		}
		close(released)
		synctest.Wait()
		if w := s.get(); w.Header().Get("RateLimit-Remaining") != "4" {
			t.Errorf("%v", w.Header())
		}
	})
}

// blocking is a plain tb.Limiter that ignores its context, or waits for its end.
type blocking struct {
	tb.Limiter
	heeds    bool
	released chan struct{}
	key      any
	value    *any
}

func (b blocking) AllowN(ctx context.Context, _ string, _ int) (tb.Decision, error) {
	*b.value = ctx.Value(b.key)
	if b.heeds {
		<-ctx.Done()
		return tb.Decision{}, ctx.Err()
	}
	<-b.released
	panic("no request waits for this call")
}

func TestPlainLimiterThatBlocks(t *testing.T) {
	type key struct{}
	for _, heeds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			released, value := make(chan struct{}), new(any)
			s := newSite(t, jsonRules("", jsonRule("r", "[]", 2, "")),
				WithLimiter(func(Rule) (tb.Limiter, error) {
					return blocking{nil, heeds, released, key{}, value}, nil
				}))
			start := time.Now()
			w := s.send(request().WithContext(context.WithValue(t.Context(), key{}, "v")))
			if waited := time.Since(start); w.Code != http.StatusOK || waited != DefaultTimeout {
				t.Errorf("status %d after %v", w.Code, waited)
			}
			close(released) // a late panic ends no process
			synctest.Wait()
			if *value != "v" {
				t.Errorf("the limiter sees the value %v", *value)
			}
		})
	}
}
