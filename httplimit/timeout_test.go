package httplimit

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// stuck is a limiter that blocks until released is closed, and then grants.
type stuck struct {
	answering
	released chan struct{}
}

func (s stuck) AllowN(ctx context.Context, key string, n int) (tb.Decision, error) {
	<-s.released
	return s.answering.AllowN(ctx, key, n)
}

// Limiters that never answer do not cost a goroutine for each request.
func TestLateCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, errs := make(chan struct{}), []error(nil)
		s := newSite(t, jsonRules("", jsonRule("a", "[]", 5, ""), jsonRule("b", "[]", 5, "")),
			WithHooks(Hooks{Error: func(_ *http.Request, e Event) { errs = append(errs, e.Err) }}),
			WithLimiter(func(Rule) (tb.Limiter, error) {
				return stuck{answering{Allowed: true, Remaining: 4}, released}, nil
			}))
		for s.late.Load() < maxLate {
			s.get()
			synctest.Wait()
		}
		before := len(errs)
		start := time.Now()
		for range 100 {
			s.get()
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("100 more requests took %v", waited)
		}
		if n := len(errs) - before; n != 100 || s.served != len(errs) {
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

// All limiters of a request share one time limit. At its end no further one is asked, not even for
// a shadow rule.
func TestTimeLimitOfAllLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, asked := make(chan struct{}), new([]string)
		s := newSite(t, jsonRules("", jsonRule("slow", "[]", 5, ""),
			jsonRule("trial", "[]", 5, `"mode": "shadow"`)),
			WithLimiter(func(r Rule) (tb.Limiter, error) {
				if r.Name == "slow" {
					return stuck{released: released}, nil
				}
				return &otherLimiter{rule: r, asked: asked}, nil
			}))
		s.get()
		synctest.Wait()
		close(released)
		if st := s.Stats(); st[0].Errors != 1 || st[1].Errors != 1 || len(*asked) > 0 {
			t.Errorf("%+v, asked %v", st, *asked)
		}
	})
}
