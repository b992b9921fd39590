package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestParseDelays(t *testing.T) {
	p := mustParse(t, jsonRules(`"max_waiting": 1048576`, jsonRule("a", "[]", 10,
		`"on_limit": "delay", "max_delay": "500ms"`), jsonRule("b", "[]", 10, `"on_limit": "refuse"`)))
	a, b := p.Sets[0].Rules[0], p.Sets[0].Rules[1]
	if a.OnLimit != Delay || a.MaxDelay != 500*time.Millisecond || b.OnLimit != Refuse ||
		b.MaxDelay != 0 || p.MaxWaiting != 1<<20 {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct{ policy, want string }{
		{jsonRule("r", "[]", 1, `"on_limit": "wait"`), `on_limit must be refuse or delay (got "wait")`},
		{jsonRule("r", "[]", 1, `"on_limit": 1`), "on_limit must be a string (got a number)"},
		{jsonRule("r", "[]", 1, `"on_limit": "delay"`),
			"max_delay is missing, because on_limit is delay"},
		{jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "1"`),
			`max_delay must be a duration such as "500ms" (got "1")`},
		{jsonRule("r", "[]", 0, `"on_limit": "delay", "max_delay": "1s"`),
			"algorithm_config.burst must be > 0 (got 0)"},
		{jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": 500`),
			`max_delay must be a duration such as "500ms" (got a number)`},
		{jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "0s"`),
			"max_delay must be > 0 (got 0s)"},
		{jsonRules("", jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "-1s"`)),
			"rules[0].max_delay must be > 0 (got -1s)"},
		{jsonRule("r", "[]", 1, `"block": 60`),
			`block must be a duration such as "500ms" (got a number)`},
		{jsonRule("r", "[]", 1, `"block": "0s"`), "block must be > 0 (got 0s)"},
		{jsonRule("r", "[]", 1, `"block": "999us"`), "block must be 1ms to 8760h (got 999µs)"},
		{jsonRule("r", "[]", 1, `"block": "8760h1ns"`),
			"block must be 1ms to 8760h (got 8760h0m0.000000001s)"},
		{jsonRule("r", "[]", 1, `"block": "1h", "on_limit": "delay", "max_delay": "1s"`),
			"block must not be in a rule with on_limit delay, which lets clients come too fast"},
		{`{"name": "r", "limit_keys": [], "block": "1h", "algorithm_config": {"rps": 1, "burst": 1,
			"adaptive": {"min": 1, "max": 1, "target_p99": "1s"}}}`,
			"block must not be in a rule with adaptive, because a slow downstream would block clients"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "ip:address", "keep": {}}`),
			"priority.by must not be ip:address\npriority.keep must not be empty"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {}}`),
			"priority.keep must not be empty"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"a": 1, "b": -0.1}}`),
			"priority.keep.b must be >= 0 (got -0.1)\n" +
				"priority.keep.a must be 0 or more, and below 1 (got 1)"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"": 0}}`),
			`priority.keep must not have the name "", because an empty value counts as missing`},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"*": 0}}, "block": "1s"`),
			"priority must not be in a rule with block, because one class would block the others"},
		{
			jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"*": 0}}, "on_limit": "delay",
				"max_delay": "1s"`),
			"priority must not be in a rule with on_limit delay, which lends tokens in advance",
		},
		{jsonRules(`"max_waiting": 0.5`, jsonRule("r", "[]", 1, "")),
			"max_waiting must be a whole number, 1 to 1048576 (got 0.5)"},
		{jsonRules(`"max_waiting": 1048577`, jsonRule("r", "[]", 1, "")),
			"max_waiting must be a whole number, 1 to 1048576 (got 1048577)"},
	} {
		_, err := Parse([]byte(c.policy))
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
		got := ""
		if err := errors.Join(p.Check()...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.rule, got, c.want)
		}
	}
}
