package httplimit

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// wantFailure sends a request to limiters of a store, which must have failed: the request passes,
// or gets 503, and the error names the store.
func wantFailure(t *testing.T, name, policy string, a answers) {
	t.Helper()
	for _, closed := range []bool{false, true} {
		var failure error
		opts := []Option{WithStore(referenceStore{t: t, answers: a}), WithHooks(Hooks{Error: func(_ *http.Request, e Event) {
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
			!strings.Contains(failure.Error(), "the store httplimit.referenceStore returns nonsense") {
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
		all := func() ([]tb.Decision, bool) { return decisions, allowed }
		wantFailure(t, sprintf("%+v, %v", decisions, allowed), two, answers{all: all})
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
		wantFailure(t, sprintf("%+v", d), shadow, answers{decision: &d})
	}
	wantFailure(t, "no charge", two, answers{noCharge: true})
	for _, mode := range []string{"enforce", "shadow"} {
		delaying := `{"name": "r", "limit_keys": ["header:k"], "on_limit": "delay", "mode": "` + mode +
			`", "max_delay": "1s", "algorithm_config": {"rps": 1, "burst": 5}}`
		for _, delay := range []time.Duration{-1, math.MinInt64, time.Second + 1, tb.Never} {
			wantFailure(t, "delay", delaying, answers{delay: &delay})
		}
	}
}

// A store may decide by a limit that the rule does not have yet, or not any more.
func TestMoreTokensThanTheBurst(t *testing.T) {
	d := tb.Decision{Allowed: true, Remaining: 9}
	for _, mode := range []string{"enforce", "shadow"} {
		s := newSite(t, jsonRule("r", "[]", 5, `"mode": "`+mode+`"`), WithStore(referenceStore{
			t: t, answers: answers{decision: &d},
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
			WithStore(referenceStore{t: t, answers: answers{level: &level}}),
			WithFields(Fields{XRateLimit: true}))
		wants(t, s.get("W: 4"), "RateLimit-Reset: 10")
		wants(t, s.get("W: 6"), "Retry-After: 50")
	}
}
