package httplimit

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A shadow rule decides as if it delayed, and the request does not wait.
func TestShadowRuleNeverDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delays []time.Duration
		q := newQueue(t, jsonRules("", jsonRule("r", "[]", 100, ""),
			delaying("trial", "[]", 10, `"mode": "shadow"`)), WithHooks(Hooks{
			Shadow: func(_ *http.Request, e Event) { delays = append(delays, e.Delay) },
		}))
		for range 16 {
			if w := q.get("x"); w.Code != http.StatusOK || w.Header().Get("RateLimit-Limit") != "100" {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		}
		if at := time.Since(q.start); at > 0 {
			t.Errorf("a request waited for %v", at)
		}
		s := q.Stats()[1]
		if s.ShadowGranted != 15 || s.ShadowRefused != 1 || s.Delayed != 5 || s.DelaySeconds != 1.5 {
			t.Errorf("%+v", s)
		}
		ms := time.Millisecond
		want := append(make([]time.Duration, 10), 100*ms, 200*ms, 300*ms, 400*ms, 500*ms, 0)
		if !slices.Equal(delays, want) {
			t.Errorf("delays %v, want %v", delays, want)
		}
		q.pending.Wait()
	})
}

// Explain returns the delay that the request would have, and takes nothing.
func TestExplainDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, delaying("r", "[]", 10, ""))
		explain := func() Explanation { return q.Explain(request())[0] }
		if e := explain(); !e.Allowed || e.Delay != 0 || e.MaxDelay != 500*time.Millisecond {
			t.Errorf("%+v", e)
		}
		for range 12 {
			q.get("x")
		}
		for range 2 {
			e := explain()
			if !e.Allowed || e.Delay != 300*time.Millisecond || e.Level.Tokens != -2 {
				t.Errorf("%+v", e)
			}
		}
		for range 3 {
			q.get("x")
		}
		if e := explain(); e.Allowed || e.Delay != 0 || e.RetryAfter != 100*time.Millisecond {
			t.Errorf("%+v", e)
		}
		q.pending.Wait()
	})
}
