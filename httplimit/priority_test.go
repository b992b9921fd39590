package httplimit

import (
	"strings"
	"testing"
)

// left is how many requests of a class a full bucket grants.
func TestPriority(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		fields     []string
		class      string
		left       int
	}{
		{"a share that floating point has not", `"burst": 30} %s`, []string{"Class: a"}, "a", 27},
		{"a class without a share", `"burst": 30} %s`, []string{"Class: admin"}, "admin", 30},
		{"any other class", `"burst": 30} %s`, []string{"Class: x"}, "*", 24},
		{"no class", `"burst": 30} %s`, nil, "*", 24},
		{"an empty class", `"burst": 30} %s`, []string{"Class: "}, "*", 24},
		{"the burst of a tier", `"burst": 30, "tiers": {"by": "header:plan", "limits": {"gold": {
			"rps": 1, "burst": 100}}}} %s`, []string{"Class: a", "Plan: gold"}, "a", 90},
		{"an adaptive rate", `"burst": 30, "adaptive": {"min": 1, "max": 2, "target_p99": "1s"}} %s`,
			[]string{"Class: a"}, "a", 27},
		{"a fraction", `"burst": 1, "fixed_cost": 0.45} %s`, []string{"Class: a"}, "a", 2},
		{"a cost in the response", `"burst": 30, "cost_source": "response:status",
			"status_costs": {"2xx": 2}} %s`, []string{"Class: a"}, "a", 14},
	} {
		s := newSite(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, `+
			sprintf(c.rule, `, "priority": {"by": "header:class", "keep": {
				"a": 0.1, "admin": 0, "*": 0.2}}}`))
		x := s.Explain(request(c.fields...))[0]
		if c.left > 20 && x.Remaining != c.left-1 || x.Class != c.class {
			t.Errorf("%s: %d remain after one request of %q, want %d of %q", c.name, x.Remaining, x.Class,
				c.left-1, c.class)
		}
		s.granted(c.left, c.fields...)
		if c.name == "no class" {
			s.granted(3, "Class: a")
			s.granted(3, "Class: admin")
		}
	}
	// The classes of a shadow rule refuse nothing, and two spellings of a host are one class.
	s := newSite(t, `{"name": "r", "limit_keys": [], "mode": "shadow",
		"priority": {"by": "header:class",
		"keep": {"a": 0.5, "b": 0}}, "algorithm_config": {"rps": 1, "burst": 4}}`)
	for range 3 {
		s.get("Class: a", "Class: b")
	}
	if st := s.Stats()[0]; st.ShadowGranted != 2 || st.ShadowRefused != 1 {
		t.Errorf("%+v, want a repeated class to leave the most", st)
	}
	for keep, want := range map[string]string{
		`{"h": 0.5, "H": 0.1}`: "priority.keep.h must not have the same values as \"H\"",
		`{"a b": 0.5}`:         `priority.keep["a b"] must be a host name`,
	} {
		_, err := New(mustParse(t, `{"name": "r", "limit_keys": [], "priority": {"by": "header:host",
			"keep": `+keep+`}, "algorithm_config": {"rps": 1, "burst": 4}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", keep, err, want)
		}
	}
}
