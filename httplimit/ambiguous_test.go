package httplimit

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Programs differ in which of several values they take. The limiter takes none.
func TestRepeatedKeysAreRefused(t *testing.T) {
	for _, c := range []struct{ rule, once, twice string }{
		{jsonRule("r", `["header:k"]`, 2, ""), "K: a", "K: a|K: b"},
		{jsonRule("r", `["header:k"]`, 2, `"on_missing": "shared"`), "K: a", "K: |K: b"},
		{jsonRule("r", `["header:k"]`, 2, ""), "K: a", "K: a|k: a"},
		{jsonRule("r", `["header:cookie"]`, 2, ""), "Cookie: k=a", "Cookie: k=a|Cookie: k=b"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k=a&k=b"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k=a&%6b=a"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k&k=b"},
		{jsonRule("r", `["query:k", "header:x"]`, 2, ""), "/?k=a|X: 1", "/?k=a&k=a|X: 1"},
		{jsonRule("r", `[]`, 2, `"match": {"header:plan": "free"}`), "Plan: free",
			"Plan: gold|Plan: free"},
		{jsonRule("r", `[]`, 2, `"match": {"query:plan": "free"}`), "/?plan=free",
			"/?plan=gold&plan=free"},
		{jsonRule("r", `["jwt:org"]`, 2, ""), "Authorization: " + token(`{"org": "a"}`),
			"Authorization: Basic eA==|Authorization: " + token(`{"org": "a"}`)},
	} {
		s := newSite(t, jsonRules(`"jwt": "unverified"`, c.rule))
		s.granted(2, strings.Split(c.once, "|")...)
		twice := strings.Split(c.twice, "|")
		w := s.get(twice...)
		if p := problem(t, w); w.Code != http.StatusBadRequest || s.served > 2 ||
			!strings.HasSuffix(p.Detail, "It is there more than once.") {
			t.Errorf("%s: %d %+v", c.twice, w.Code, p)
		}
		e := s.Explain(request(twice...))
		if len(e) != 1 || e[0].AmbiguousKey == "" || e[0].Allowed || e[0].RetryAfter != tb.Never {
			t.Errorf("%s: %+v", c.twice, e)
		}
		if st := s.Stats()[0]; st.Granted != 2 || st.Refused != 1 || st.Rejected != 1 {
			t.Errorf("%s: %+v", c.twice, st)
		}
	}
}

// To a shadow rule, a key that is repeated is missing.
func TestShadowRulesOnRepeatedKeys(t *testing.T) {
	for onMissing, want := range map[string]string{"skip": "r", "shared": "r (trial)"} {
		s := newSite(t, jsonRules("", jsonRule("r", "[]", 5, ""), jsonRule("trial", `["header:k"]`, 5,
			sprintf(`"mode": "shadow", "on_missing": %q`, onMissing))))
		if got := s.applying("K: 1", "K: 2"); got != want {
			t.Errorf("%s: %s, want %s", onMissing, got, want)
		}
		if w := s.get("K: 1", "K: 2"); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", onMissing, w.Code)
		}
	}
	s := newSite(t, jsonRules("", jsonRule("r", "[]", 5, ""), jsonRule("trial", `[]`, 5,
		`"mode": "shadow", "match": {"header:k": "1"}`)))
	if got := s.applying("K: 1", "K: 1"); got != "r" {
		t.Error(got)
	}
}

// A key that a match names and that is repeated ends a ladder at an enforced rule, and at no shadow
// rule.
func TestRepeatedKeysInALadder(t *testing.T) {
	const gold = `"match": {"header:plan": "gold"}`
	free, trial := jsonRule("free", "[]", 5, ""), jsonRule("trial", `["header:k"]`, 5,
		`"mode": "shadow"`)
	for want, rules := range map[string][]string{
		"gold! (trial)": {jsonRule("gold", "[]", 5, gold), free, trial},
		"free (all)": {jsonRule("gold", "[]", 5, `"mode": "shadow", `+gold),
			jsonRule("all", "[]", 5, `"mode": "shadow"`), free},
	} {
		s := newSite(t, jsonRules("", rules...))
		if got := s.applying("K: 1", "Plan: gold", "Plan: free"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A repeated cost is not cheaper than any other.
func TestRepeatedCostIsTheHighest(t *testing.T) {
	for config, want := range map[string]float64{
		`"default_cost": 2`:                                   5,
		`"default_cost": 9`:                                   9,
		`"min_cost": 7`:                                       7,
		`"default_cost": 2, "max_cost": 9`:                    9,
		`"default_cost": 2, "max_cost": 9, "min_cost": 4`:     9,
		`"default_cost": 12, "max_cost": 9, "min_cost": 4`:    12,
		`"default_cost": 0.5, "max_cost": 1, "min_cost": 0.1`: 1,
	} {
		for source, lines := range map[string][]string{
			"header:w": {"W: 1", "W: 5"}, "query:w": {"/?w=1&w=5"},
		} {
			s := newSite(t, oneRule("[]", sprintf(`"rps": 1, "burst": 99, "cost_source": %q, %s`, source,
				config)))
			if got := s.costs(request(lines...)); got != want {
				t.Errorf("%s %s: costs %v, want %v", source, config, got, want)
			}
		}
	}
}

// A path that servers read differently is refused if a selector compares paths.
func TestPathsWithTwoMeaningsAreRefused(t *testing.T) {
	const target = "/v1/..%2fx"
	s := newSite(t, jsonRules(`"selector": {"pathPrefix": "/v1/"}`, jsonRule("r", "[]", 2, "")))
	w := s.get(target)
	if p := problem(t, w); w.Code != http.StatusBadRequest || s.served > 0 ||
		p.Detail != "Rule r needs a path that has one meaning." {
		t.Errorf("%d %+v", w.Code, p)
	}
	if e := s.Explain(request(target)); len(e) != 1 || e[0].AmbiguousKey != "path" {
		t.Errorf("%+v", e)
	}
	for _, selector := range []string{`{"methods": ["GET"]}`, `{}`} {
		newSite(t, jsonRules(`"selector": `+selector, jsonRule("r", "[]", 2, ""))).granted(2, target)
	}
	for _, spec := range []string{
		`"selector": {"pathPrefix": "/v1/", "methods": ["POST"]}`,
		`"selector": {"pathPrefix": "/v1/"}, "mode": "shadow"`,
	} {
		newSite(t, jsonRules(spec, jsonRule("r", "[]", 2, ""))).unlimited(target)
	}
}
