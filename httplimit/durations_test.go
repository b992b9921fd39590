package httplimit

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestExplainHasTheLevel(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("key", `["header:k"]`, 4, `"on_missing": "reject"`),
		sprintf(`{"name": "slow", "limit_keys": ["ip:address"],
			"algorithm_config": {"rps": 0.1, "burst": 3, "fixed_cost": 1.5}}`)))
	s.get("K: 1")
	s.now = s.now.Add(250 * time.Millisecond)
	e := s.Explain(request("K: 1"))
	want := tb.Level{Tokens: 3.25, NextToken: 750 * time.Millisecond, Full: 750 * time.Millisecond}
	if e[0].Level != want {
		t.Errorf("%+v, want %+v", e[0].Level, want)
	}
	want = tb.Level{Tokens: 1.525, NextToken: 4750 * time.Millisecond, Full: 14750 * time.Millisecond}
	if e[1].Level != want {
		t.Errorf("%+v, want %+v", e[1].Level, want)
	}
	if again := s.Explain(request("K: 1")); again[1].Level != want {
		t.Errorf("Explain took tokens: %+v", again[1])
	}
	if e := s.Explain(request()); e[0].Level != (tb.Level{}) || e[0].MissingKey != "header:k" {
		t.Errorf("%+v", e[0])
	}
}

// The decision of a bucket that reports no level is all that is known of it.
func TestFieldsOfABucketWithoutLevel(t *testing.T) {
	for _, c := range []struct {
		config string
		answer tb.Decision
		want   string
	}{
		{`"rps": 0.1, "burst": 5`, tb.Decision{Allowed: true, Remaining: 3}, "RateLimit-Reset: 10"},
		{`"rps": 1, "burst": 5`, tb.Decision{Allowed: true, Remaining: 3}, "RateLimit-Reset: 1"},
		{
			`"rps": 1, "burst": 5, "fixed_cost": 5`,
			tb.Decision{RetryAfter: 7 * time.Second, Remaining: 3},
			"Retry-After: 7",
		},
		{
			`"rps": 1, "burst": 5, "fixed_cost": 8`,
			tb.Decision{RetryAfter: tb.Never, Remaining: 3},
			"Retry-After: 5",
		},
		{ // decisions of another limit
			`"rps": 1, "burst": 5, "fixed_cost": 8`,
			tb.Decision{RetryAfter: 7 * time.Second, Remaining: 3},
			"Retry-After: 5",
		},
		{
			`"rps": 1, "burst": 5, "fixed_cost": 5`,
			tb.Decision{RetryAfter: tb.Never, Remaining: 3},
			"Retry-After: 2",
		},
	} {
		s := newSite(t, oneRule("[]", c.config), steady(), WithStore(referenceStore{
			t: t, answers: answers{decision: &c.answer, level: &tb.Level{Full: -1}},
		}))
		wants(t, s.get(), c.want)
	}
	if d := supplyTime(tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: 1 << 33}, 1<<30); d != tb.Never {
		t.Errorf("2³⁰ tokens take %v", d)
	}
}
