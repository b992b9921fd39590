package httplimit

import (
	"strings"
	"testing"
)

func TestMatchComparesAllPairsAsText(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["ip:address"]`, 2,
		`"match": {"jwt:level": 0.3e1, "jwt:paid": true, "header:x-plan": "gold",
			"ip:address": "192.0.2.1"}`)))
	send := func(level, paid any, plan string) (applies bool) {
		r := request("X-Plan: " + plan)
		r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{
			"level": level,
			"paid":  paid,
		}))
		return len(s.Explain(r)) > 0
	}
	for _, c := range []struct {
		level, paid any
		plan        string
		want        bool
	}{
		{3, true, "gold", true},
		{int64(3), "true", "gold", true},
		{3.0, true, "gold", true},
		{"3", true, "gold", true},
		{3.5, true, "gold", false},
		{3, false, "gold", false},
		{3, true, "Gold", false},
		{nil, true, "gold", false},
	} {
		if got := send(c.level, c.paid, c.plan); got != c.want {
			t.Errorf("%v applies: %v", c, got)
		}
	}
}

func TestEvaluation(t *testing.T) {
	const match = `"match": {"header:plan": %q}`
	gold, silver := sprintf(match, "gold"), sprintf(match, "silver")
	rules := []string{
		jsonRule("gold-s", `["header:k"]`, 5, gold),
		jsonRule("silver", `["header:k"]`, 5, silver),
		jsonRule("gold-m", `["header:k"]`, 5, gold), // another window
		jsonRule("free", `["header:k"]`, 5, ""),
		jsonRule("tenant", `["header:t", "header:k"]`, 5, ""),
		jsonRule("tenant-gold", `["header:k", "header:t"]`, 5, gold), // the same keys
		jsonRule("global", `[]`, 5, ""),
	}
	k, tenant, plan, other := "K: 1", "T: 1", "Plan: gold", "Plan: silver"
	for _, c := range []struct {
		evaluation string
		request    []string
		want       string
	}{
		{"ladders", []string{k, tenant, plan}, "gold-s gold-m tenant global"},
		{"ladders", []string{k, tenant, other}, "silver tenant global"},
		{"ladders", []string{k, "Plan: none"}, "free global"},
		{"ladders", []string{plan}, "global"},
		{"all_match", []string{k, tenant, plan}, "gold-s gold-m free tenant tenant-gold global"},
		{"all_match", []string{k, other}, "silver free global"},
		{"first_match", []string{k, tenant, plan}, "gold-s"},
		{"first_match", []string{k, tenant}, "free"},
		{"first_match", []string{tenant, plan}, "global"}, // the others lack k
	} {
		s := newSite(t, jsonRules(sprintf(`"evaluation": %q`, c.evaluation), rules...))
		if got := s.applying(c.request...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.evaluation, c.request, got, c.want)
		}
	}
	if s := newSite(t, jsonRules("", rules...)); s.applying(k, tenant,
		plan) != "gold-s gold-m tenant global" {
		t.Error("ladders are not the default")
	}
}

// Upper and lower case are the same in header names, so they are the same in keys. An enterprise
// key must not fall under the free limit because a rule spells the header differently.
func TestSpellingsOfAHeaderAreOneLadder(t *testing.T) {
	s := newSite(t, jsonRules("",
		jsonRule("gold", `["header:X-Key"]`, 5, `"match": {"header:Plan": "gold"}`),
		jsonRule("gold-m", `["header:x-key"]`, 5, `"match": {"header:plan": "gold"}`),
		jsonRule("free", `["header:x-KEY"]`, 5, ""), jsonRule("other", `["query:X-Key"]`, 5, "")))
	if got := s.applying("X-Key: 1", "Plan: gold"); got != "gold gold-m" {
		t.Error(got)
	}
	if got := s.applying("X-Key: 1"); got != "free" {
		t.Error(got)
	}
}

// The pairs of a match are not ordered.
func TestSameMatchIsOneGroup(t *testing.T) {
	const match = `"match": {"query:a": 1, "query:b": 2, "query:c": 3, "query:d": 4, "query:e": 5}`
	for range 10 {
		s := newSite(t, jsonRules("", jsonRule("a", "[]", 5, match), jsonRule("b", "[]", 5, match),
			jsonRule("c", "[]", 5, "")))
		if got := s.applying("/?e=5&d=4&c=3&b=2&a=1"); got != "a b" {
			t.Fatal(got)
		}
	}
	s := newSite(t, jsonRules("", jsonRule("a", `["header:k"]`, 5, match),
		jsonRule("b", `["header:k"]`, 5, match+`, "on_missing": "shared"`)))
	if got := s.applying("/?e=5&d=4&c=3&b=2&a=1"); got != "b" {
		t.Errorf("%s applies without the key of a", got)
	}
}

func TestFallbackAppliesIfNoRuleDoes(t *testing.T) {
	fallback := `"fallback_limit": {"limit_keys": ["ip:address"], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 2}, "match": {"header:site": "1"}}`
	gold := jsonRule("gold", `["header:k"]`, 9, `"match": {"header:plan": "gold"}`)
	trial := jsonRule("trial", `["header:k"]`, 9, `"mode": "shadow"`)
	for _, c := range []struct {
		policy  string
		request []string
		want    string
	}{
		{jsonRules(fallback, gold), []string{"Site: 1", "K: 1", "Plan: gold"}, "gold"},
		// gold lacks its key
		{jsonRules(fallback, gold), []string{"Site: 1", "Plan: gold"}, "fallback_limit"},
		{jsonRules(fallback, gold), []string{"Site: 1", "K: 1"}, "fallback_limit"},
		{jsonRules(fallback, gold), []string{"K: 1"}, ""}, // its own does not
		{jsonRules(fallback, gold), []string{"Site: 1", "Plan: gold", "K: "}, "fallback_limit"},
		{jsonRules(fallback, gold, jsonRule("other", `["header:k"]`, 9, "")),
			[]string{"Site: 1", "Plan: gold"}, "fallback_limit"},
		{jsonRules(`"evaluation": "first_match",`+fallback, gold),
			[]string{"Site: 1", "Plan: gold"}, "fallback_limit"},
		{jsonRules(`"evaluation": "all_match",`+fallback, gold),
			[]string{"Site: 1", "Plan: gold"}, "fallback_limit"},
		{jsonRules(fallback, trial), []string{"Site: 1", "K: 1"}, "(trial) fallback_limit"},
		{jsonRules(`"mode": "shadow",`+fallback, trial), []string{"Site: 1", "K: 1"}, "(trial)"},
		{jsonRules(`"mode": "shadow",` + fallback), []string{"Site: 1"}, "(fallback_limit)"},
	} {
		if got := newSite(t, c.policy).applying(c.request...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.policy, c.request, got, c.want)
		}
	}
}

// A rule that does not apply leaves nothing to the rule after it: neither its key, which would give
// the clients of a rule without keys a bucket each, nor its fault.
func TestRuleThatDoesNotApply(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("key", `["header:k"]`, 5, ""),
		jsonRule("all", "[]", 1, `"mode": "shadow"`)))
	for i := range 3 {
		s.get(sprint("K: ", i))
	}
	if st := s.Stats()[1]; st.ShadowGranted != 1 || st.ShadowRefused != 2 {
		t.Errorf("%+v", st)
	}
	s = newSite(t, jsonRules("", strings.Replace(plans("gold", 50), `"r"`, `"key"`, 1),
		jsonRule("all", "[]", 5, "")))
	s.granted(5, "Plan: gold", "Plan: free")
}
