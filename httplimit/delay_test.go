package httplimit

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
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

func TestParseDelays(t *testing.T) {
	p := mustParse(t, jsonRules(`"max_waiting": 1048576`, delaying("a", "[]", 10, ""),
		jsonRule("b", "[]", 10, `"on_limit": "refuse"`)))
	a, b := p.Sets[0].Rules[0], p.Sets[0].Rules[1]
	if a.OnLimit != Delay || a.MaxDelay != 500*time.Millisecond || b.OnLimit != Refuse ||
		b.MaxDelay != 0 || p.MaxWaiting != 1<<20 {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct{ policy, want string }{
		{jsonRule("r", "[]", 1, `"on_limit": "wait"`), `on_limit must be refuse or delay (got "wait")`},
		{jsonRule("r", "[]", 1, `"on_limit": 1`), "on_limit must be a string (got a number)"},
		{
			jsonRule("r", "[]", 1, `"on_limit": "delay"`),
			"max_delay is missing, because on_limit is delay",
		},
		{
			jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "1"`),
			`max_delay must be a duration such as "500ms" (got "1")`,
		},
		{
			jsonRule("r", "[]", 0, `"on_limit": "delay", "max_delay": "1s"`),
			"algorithm_config.burst must be > 0 (got 0)",
		},
		{
			jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": 500`),
			`max_delay must be a duration such as "500ms" (got a number)`,
		},
		{
			jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "0s"`),
			"max_delay must be > 0 (got 0s)",
		},
		{
			jsonRules("", jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "-1s"`)),
			"rules[0].max_delay must be > 0 (got -1s)",
		},
		{
			jsonRules(`"max_waiting": 0.5`, jsonRule("r", "[]", 1, "")),
			"max_waiting must be a whole number, 1 to 1048576 (got 0.5)",
		},
		{
			jsonRules(`"max_waiting": 1048577`, jsonRule("r", "[]", 1, "")),
			"max_waiting must be a whole number, 1 to 1048576 (got 1048577)",
		},
	} {
		_, err := ParsePolicy([]byte(c.policy))
		if want := "httplimit: policy:\n" + c.want; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", c.policy, err, want)
		}
	}
}

// A policy that is made in Go is checked like a policy that is read.
func TestDelaysMadeInGo(t *testing.T) {
	limit := tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}
	for _, c := range []struct {
		rule    Rule
		waiting int
		want    string
	}{
		{Rule{OnLimit: Delay, MaxDelay: time.Second}, 0, ""},
		{Rule{OnLimit: Delay}, 0, "rules[0].max_delay is missing, because on_limit is delay"},
		{Rule{OnLimit: Delay, MaxDelay: -1}, 0, "rules[0].max_delay must be > 0 (got -1ns)"},
		{Rule{OnLimit: 2}, 0, "rules[0].on_limit is 2, want Refuse or Delay"},
		{Rule{OnLimit: -1}, 0, "rules[0].on_limit is -1, want Refuse or Delay"},
		{Rule{}, -1, "max_waiting must be a whole number, 1 to 1048576 (got -1)"},
	} {
		c.rule.Name, c.rule.Limit = "r", limit
		p := Rules(c.rule)
		p.MaxWaiting = c.waiting
		_, err := New(p)
		if got := strings.TrimPrefix(sprint(err), "httplimit: "); err != nil && got != c.want ||
			err == nil && c.want != "" {
			t.Errorf("%+v: %s, want %s", c.rule, got, c.want)
		}
	}
}
