package httplimit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// What a limiter of WithLimiter lacks is an error, in New and in SetPolicy.
func TestRulesThatNeedMoreThanAllowN(t *testing.T) {
	bare := WithLimiter(func(Rule) (tb.Limiter, error) { return answering{Allowed: true}, nil })
	for want, policy := range map[string]string{
		"tiers need a Store": oneRule("[]", `"rps": 1, "burst": 10, "tiers": {"by": "header:x",
			"limits": {"a": {"rps": 1, "burst": 1}}}`),
		"on_limit must be refuse": delaying("r", "[]", 10, ""),
		"cannot settle a cost":    reporting("response:bytes", ""),
	} {
		if _, err := New(mustParse(t, policy), bare); err == nil ||
			!strings.Contains(err.Error(), `rule "r": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		l := mustNew(t, jsonRule("r", "[]", 10, ""), bare)
		if err := l.SetPolicy(mustParse(t, policy)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SetPolicy: %v, want %s", err, want)
		}
	}
}

// Clients do not get negative numbers.
func TestDecisionsOfBareLimitersAreClamped(t *testing.T) {
	odd := tb.Decision{RetryAfter: -5 * time.Second, Remaining: -3}
	for _, odd.Allowed = range []bool{true, false} {
		s := newSite(t, jsonRule("r", "[]", 5, ""),
			WithLimiter(func(Rule) (tb.Limiter, error) { return answering(odd), nil }))
		w := s.get()
		wants(t, w, "RateLimit-Limit: 5", "RateLimit-Remaining: 0", `RateLimit: "r";r=0;t=1`)
		if (w.Code == 200) != odd.Allowed {
			t.Errorf("status %d", w.Code)
		}
	}
}

// Bare limiters are asked in the order of the policy, until one refuses. They get whole tokens.
func TestRulesWithBareLimiters(t *testing.T) {
	var asked []string
	limiters := WithLimiter(func(r Rule) (tb.Limiter, error) {
		return &otherLimiter{rule: r, asked: &asked}, nil
	})
	s := newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 5, ""),
		jsonRule("two", `["header:k"]`, 2, ""), jsonRule("three", `["header:k"]`, 9, "")), limiters)
	s.granted(2, "K: a") // and the third is refused by two
	want := []string{"one 1", "two 1", "three 1", "one 1", "two 1", "three 1", "one 1", "two 1"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	for i, want := range []uint64{2, 2, 2} {
		if st := s.Stats()[i]; st.Granted != want || st.Refused != uint64(i%2) {
			t.Errorf("%+v, want %d granted", st, want)
		}
	}
	asked = nil
	s = newSite(t, oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "header:w"`), limiters)
	for _, cost := range []string{"0.1", "2.5", "3", "3e9", "1e300"} {
		s.get("W: " + cost)
	}
	want = []string{"r 1", "r 3", "r 3", "r 2147483647", "r 2147483647"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
}
