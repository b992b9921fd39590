package httplimit

import (
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// lyingStore is a referenceStore with other answers. What is nil changes nothing.
type lyingStore struct {
	referenceStore
	lie      func() (decisions []tb.Decision, allowed bool) // of TakeAll
	decision *tb.Decision                                   // of a charge
	delay    time.Duration
	level    *tb.Level
	empty    bool // no charge, once the store is in use
}

type lyingLimiter struct {
	tb.StoreLimiter
	store *lyingStore
}

type lyingCharge struct {
	tb.StoreCharge
	store *lyingStore
}

func (s *lyingStore) Limiters(rule string, limits []tb.Limit) (all []tb.StoreLimiter, err error) {
	all, err = s.referenceStore.Limiters(rule, limits)
	for i := range all {
		all[i] = lyingLimiter{all[i], s}
	}
	return all, err
}

func (s *lyingStore) TakeAll(ctx context.Context, t time.Time, charges []tb.Charge,
	buf []tb.Decision) (decisions []tb.Decision, allowed bool, err error) {
	decisions, allowed, err = s.referenceStore.TakeAll(ctx, t, charges, buf)
	if s.lie != nil {
		decisions, allowed = s.lie()
	}
	return decisions, allowed, err
}

func (l lyingLimiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	c, err := l.StoreLimiter.Charge(key, cost)
	if l.store.empty && key != "" {
		return nil, nil
	}
	return lyingCharge{c, l.store}, err
}

func (c lyingCharge) Take(t time.Time) (tb.Decision, error) {
	if c.store.decision != nil {
		return *c.store.decision, nil
	}
	return c.StoreCharge.Take(t)
}

func (c lyingCharge) Delay() time.Duration { return c.store.delay }

func (c lyingCharge) Level(t time.Time) (tb.Level, error) {
	if c.store.level != nil {
		return *c.store.level, nil
	}
	return c.StoreCharge.Level(t)
}

// wantFailure sends a request to limiters of a store, which must have failed: the request passes,
// or gets 503, and the error names the store.
func wantFailure(t *testing.T, name, policy string, store *lyingStore) {
	t.Helper()
	store.t = t
	for _, closed := range []bool{false, true} {
		var failure error
		opts := []Option{WithStore(store), WithHooks(Hooks{Error: func(_ *http.Request, e Event) {
			failure = e.Err
		}})}
		want := http.StatusOK
		if closed {
			opts, want = append(opts, WithFailClosed()), http.StatusServiceUnavailable
		}
		s := newSite(t, policy, opts...)
		w := s.get("K: k")
		if strings.Contains(policy, "shadow") {
			want = http.StatusOK
		}
		if w.Code != want || failure == nil || s.Stats()[0].Errors != 1 ||
			!strings.Contains(failure.Error(), "the store *httplimit.lyingStore returns nonsense") {
			t.Errorf("%s: status %d, want %d, error %v", name, w.Code, want, failure)
		}
		s.Explain(request("K: k"))
	}
}

// Whatever a store answers, the limiter does not panic, and what makes no sense is a failure.
func TestNonsenseOfAStore(t *testing.T) {
	two := jsonRules("", jsonRule("a", `["header:k"]`, 5, ""), jsonRule("b", `["header:k"]`, 5, ""))
	yes := tb.Decision{Allowed: true, Remaining: 1}
	no := tb.Decision{RetryAfter: time.Second}
	bad := []tb.Decision{
		{}, {RetryAfter: -1}, {RetryAfter: math.MinInt64}, {Allowed: true, RetryAfter: 1},
		{Allowed: true, Remaining: -1}, {RetryAfter: 1, Remaining: math.MinInt},
	}
	answer := func(allowed bool, decisions ...tb.Decision) {
		t.Helper()
		lie := func() ([]tb.Decision, bool) { return decisions, allowed }
		wantFailure(t, sprintf("%+v, %v", decisions, allowed), two, &lyingStore{lie: lie})
	}
	answer(true)
	answer(false)
	answer(true, yes)
	answer(false, no)
	answer(true, yes, yes, yes)
	answer(false, tb.Decision{}, tb.Decision{})
	answer(false, yes, yes)
	answer(true, yes, no)
	for _, d := range bad {
		answer(true, d, yes)
		answer(true, yes, d)
		answer(false, yes, d)
		if d != (tb.Decision{}) { // which was not asked
			answer(false, d, no)
			answer(false, no, d)
		}
		shadow := jsonRule("r", `["header:k"]`, 5, `"mode": "shadow"`)
		wantFailure(t, sprintf("%+v", d), shadow, &lyingStore{decision: &d})
	}
	wantFailure(t, "no charge", two, &lyingStore{empty: true})
	for _, mode := range []string{"enforce", "shadow"} {
		delaying := `{"name": "r", "limit_keys": ["header:k"], "on_limit": "delay", "mode": "` + mode +
			`", "max_delay": "1s", "algorithm_config": {"rps": 1, "burst": 5}}`
		for _, delay := range []time.Duration{-1, math.MinInt64, time.Second + 1, tb.Never} {
			wantFailure(t, "delay", delaying, &lyingStore{delay: delay})
		}
	}
}

// A store may decide by a limit that the rule does not have yet, or not any more.
func TestMoreTokensThanTheBurst(t *testing.T) {
	d := tb.Decision{Allowed: true, Remaining: 9}
	for _, mode := range []string{"enforce", "shadow"} {
		s := newSite(t, jsonRule("r", "[]", 5, `"mode": "`+mode+`"`), WithStore(&lyingStore{
			referenceStore: referenceStore{t: t}, decision: &d,
			lie: func() ([]tb.Decision, bool) { return []tb.Decision{d}, true },
		}), WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) {
			if e.Remaining != 5 {
				t.Errorf("%+v", e)
			}
		}}))
		if w := s.get(); mode == "enforce" {
			wants(t, w, `RateLimit: "r";r=5;t=5`, "RateLimit-Limit: 5", "RateLimit-Remaining: 5")
		}
	}
}

// A level that makes no sense is as none.
func TestNonsenseLevels(t *testing.T) {
	for _, level := range []tb.Level{{Full: -1}, {NextToken: math.MinInt64}} {
		s := newSite(t, oneRule("[]", `"rps": 0.1, "burst": 5, "cost_source": "header:w"`), steady(),
			WithStore(&lyingStore{referenceStore: referenceStore{t: t}, level: &level}),
			WithFields(Fields{XRateLimit: true}))
		wants(t, s.get("W: 4"), "RateLimit-Reset: 10")
		wants(t, s.get("W: 6"), "Retry-After: 50")
	}
}
