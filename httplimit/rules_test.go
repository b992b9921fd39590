package httplimit

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestMatchComparesAllPairsAsText(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["ip:address"]`, 2,
		`"match": {"jwt:level": 0.3e1, "jwt:paid": true, "header:x-plan": "gold",
			"ip:address": "192.0.2.1"}`)))
	send := func(level, paid any, plan string) (applies bool) {
		r, claims := request("X-Plan: "+plan), map[string]any{"level": level, "paid": paid}
		return len(s.Explain(r.WithContext(ContextWithClaims(r.Context(), claims)))) > 0
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

// A shadow rule applies where it would apply if it were enforced. The other rules apply as if the
// shadow rule were not there.
func TestShadowRuleInALadder(t *testing.T) {
	const keys, gold, shadow = `["header:k"]`, `"match": {"header:plan": "gold"}`, `"mode": "shadow"`
	trial, trialOfAll := jsonRule("t", keys, 1, shadow), jsonRule("t", "[]", 1, shadow)
	g, trialOfGold := jsonRule("g", keys, 1, gold), jsonRule("g", keys, 1, gold+", "+shadow)
	free := jsonRule("f", keys, 1, "")
	for _, c := range []struct {
		evaluation string
		rules      []string
		want       string // for gold
	}{
		{"ladders", []string{trial, g, free}, "g (t)"},
		{"ladders", []string{g, trial, free}, "g"},
		{"ladders", []string{trialOfGold, trial, free}, "f (g)"},
		{"ladders", []string{free, trial}, "f (t)"},
		{"first_match", []string{trialOfAll, g, free}, "g (t)"},
		{"first_match", []string{g, trialOfAll}, "g"},
		{"all_match", []string{trial, g}, "g (t)"},
	} {
		s := newSite(t, jsonRules(sprintf(`"evaluation": %q`, c.evaluation), c.rules...))
		if got := s.applying("K: 1", "Plan: gold"); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.evaluation, c.rules, got, c.want)
		}
	}
}

func TestShadowSetsAndMissingKeys(t *testing.T) {
	var last Event
	s := newSite(t, jsonRules(`"mode": "shadow"`, jsonRule("a", "[]", 1, ""),
		jsonRule("b", `["header:k"]`, 1, `"on_missing": "reject"`)),
		WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) { last = e }}))
	for range 3 {
		if w := s.get(); w.Code != http.StatusOK || len(w.Header()) > 0 {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	if st := s.Stats(); st[0].ShadowRefused != 2 || st[1].ShadowRefused != 3 {
		t.Errorf("%+v", st)
	}
	if last.Rule != "b" || last.Allowed || last.RetryAfter != tb.Never {
		t.Errorf("Shadow got %+v", last)
	}
}

// The value of ip:address is an address or a network.
func TestMatchOfAddresses(t *testing.T) {
	for _, c := range []struct {
		want, client string
		holds        bool
	}{
		{"192.0.2.0/24", "192.0.2.255", true},
		{"192.0.2.0/24", "192.0.3.0", false},
		{"192.0.2.77/24", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.2", false},
		{"0.0.0.0/0", "192.0.2.1", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"::/0", "2001:db8::1", true},
		{"2001:db8::/32", "2001:db8:1::1", true},
		{"2001:DB8::/32", "2001:db9::1", false},
		{"::ffff:192.0.2.0/120", "192.0.2.7", true},
		{"192.0.2.0/24", "::ffff:192.0.2.7", true},
		{"192.0.2.0/24", "64:ff9b::192.0.2.7", true},
		{"192.0.2.1", "192.0.2.1", true},
		{"::ffff:192.0.2.1", "192.0.2.1", true},
		{"64:ff9b::192.0.2.1", "192.0.2.1", true},
		{"2001:0db8::0:1", "2001:db8::1", true},
		{"2001:db8::1", "2001:db8::2", false},
	} {
		s := newSite(t, jsonRules("", jsonRule("r", "[]", 1, `"match": {"ip:address": "`+c.want+`"}`)))
		r := request()
		r.RemoteAddr = "[" + c.client + "]:80"
		if holds := len(s.Explain(r)) > 0; holds != c.holds {
			t.Errorf("%s of %s: %v", c.want, c.client, holds)
		}
	}
}

// A value that no request can have is an error, and so is the source of a cost.
func TestValuesThatNeverHold(t *testing.T) {
	for source, want := range map[string]string{
		"header:host": "is never there", "header:trailer": "is never there",
		"header:Transfer-Encoding": "is never there", "response:header:keep-alive": "is never there",
		"response:header:host": "", "header:keep-alive": "",
	} {
		_, err := ParsePolicyFor([]byte(reporting(source, "")))
		if (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), "algorithm_config.cost_source "+want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
	for key, values := range map[string][]string{
		"ip:address": {"/32", "localhost", "10.1.2.003", "10.0.0.0/33", "10.0.0.0/255.0.0.0",
			"10.0.0.*", "10.0.0.1-10.0.0.9", "10.0.0", "unknown", "0.0.0.0", "::",
			"0.0.0.0/32", "::/128", "::ffff:0.0.0.0/128", "::ffff:0:0/95", "64:ff9b::/96",
			"2002::/16", "2002:c000:200::/40", "fe80::1%eth0/64", "2001:db8::/129"},
		"header:host":              {"*.h.test", "https://h.test", "h.test/v1", "h test", "h,i"},
		"header:k":                 {" a", "a\t", "a\nb"},
		"header:accept":            {" text/html"},
		"header:authorization":     {"Bearer k\n"},
		"header:trailer":           {"a"},
		"header:Transfer-Encoding": {"chunked"},
	} {
		for _, v := range values {
			match := jsonRule("r", "[]", 1, sprintf(`"match": {%q: %q}`, key, v))
			path := string(policy.Path("match").Field(key))
			wantError(t, match, path)
			if key == "ip:address" || strings.HasPrefix(path, "match.header:t") {
				continue
			}
			tiers := sprintf(`"rps": 1, "burst": 1, "tiers": {"by": %q, "limits": {%q: {"rps": 1,
				"burst": 2}}}`, key, v)
			wantError(t, oneRule("[]", tiers), "algorithm_config.tiers")
		}
	}
	wantError(t, oneRule("[]", `"rps": 1, "burst": 1, "tiers": {"by": "header:host", "limits": {
		"h.test": {"rps": 1, "burst": 2}, "H.test:80": {"rps": 1, "burst": 3}}}`),
		"algorithm_config.tiers.limits")
	for name, values := range map[string][]string{
		"methods": {`["GET "]`, `["GET,POST"]`, `["GET POST"]`, `["\u00c9"]`, `["*"]`},
		"pathExact": {`"/a;b/c"`, `"/a?b=c"`, `"/a%20b"`, `"/a/..;b"`, `"/a\u0000"`, `"/a#b"`,
			`"/a;b\\c"`},
		"pathPrefix": {`"/a;b"`, `"/a;b/c"`, `"/a%2Fb/"`, `"/a/.;/"`},
	} {
		for _, v := range values {
			selector := sprintf(`"selector": {%q: %s}`, name, v)
			wantError(t, jsonRules(selector, jsonRule("r", "[]", 1, "")), "selector."+name)
		}
	}
	mustNew(t, jsonRules(`"selector": {"methods": ["get", "M-SEARCH"], "pathExact": "/a b%;c",
		"pathPrefix": "/\u00e9 b"}`, jsonRule("r", "[]", 1, `"match": {"header:k": "a\tb \u00e9"}`)))
}

func wantError(t *testing.T, policy, path string) {
	t.Helper()
	if _, err := ParsePolicyFor([]byte(policy)); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%s: %v, want an error of %s", policy, err, path)
	}
}
