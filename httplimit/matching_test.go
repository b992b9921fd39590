package httplimit

import (
	"net/http"
	"net/url"
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
		{jsonRule("r", `["header:authorization"]`, 2, ""), "Authorization: Basic eA==",
			"Authorization: basic eA==e"},
		{jsonRule("r", `["header:proxy-authorization"]`, 2, ""), "Proxy-Authorization: Basic eHg/",
			"Proxy-Authorization: Basic eHg_"},
		{jsonRule("r", `["header:authorization"]`, 2, ""), "Authorization: Bearer a",
			"Authorization: x BEARER a"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k=a#b"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a&x=1;2", "/?;k=a"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k=a;x"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k=a "},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k=a&%6b=a"},
		{jsonRule("r", `["query:k"]`, 2, ""), "/?k=a", "/?k&k=b"},
		{jsonRule("r", `["query:k", "header:x"]`, 2, ""), "/?k=a|X: 1", "/?k=a&k=a|X: 1"},
		{jsonRule("r", `[]`, 2, `"match": {"header:plan": "free"}`), "Plan: free",
			"Plan: gold|Plan: free"},
		{jsonRule("r", `[]`, 2, `"match": {"query:plan": "free"}`), "/?plan=free",
			"/?plan=gold&plan=free"},
		{jsonRule("r", `["jwt:org"]`, 2, ""), "Authorization: " + token(`{"org": "a"}`),
			"Authorization: Basic eA==|Authorization: " + token(`{"org": "a"}`)},
		{jsonRule("r", `["jwt:org"]`, 2, ""), "Authorization: " + token(`{"org": "a"}`),
			"Authorization: e.ey. " + token(`{"org": "a"}`)},
		{plans("gold", 2), "K: 1|Plan: gold", "K: 1|Plan: gold|Plan: free"},
	} {
		s := newSite(t, jsonRules(`"jwt": "unverified"`, c.rule))
		s.granted(2, strings.Split(c.once, "|")...)
		twice := strings.Split(c.twice, "|")
		w := s.get(twice...)
		p := problem(t, w)
		if w.Code != http.StatusBadRequest || s.served > 2 {
			t.Errorf("%s: %d %+v", c.twice, w.Code, p)
		}
		e := s.Explain(request(twice...))
		if len(e) != 1 || e[0].Allowed || e[0].RetryAfter != tb.Never ||
			p.Detail != "Rule r needs "+e[0].AmbiguousKey+" once. It is there more than once." {
			t.Errorf("%s: %+v, %+v", c.twice, e, p)
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
			"header:w": {"W: 1", "W: 5, 2"}, "query:w": {"/?w=1&w=5"},
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
	for target, want := range map[string]int{
		"/v1/%2e": 400, "/v1/.%2E/x": 400, "/%2e./x": 400, "/%2e%2e/": 400, "/v1/%2e%2ex": 200,
	} {
		if w := s.get(target); w.Code != want {
			t.Errorf("%s: status %d, want %d", target, w.Code, want)
		}
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

// A request is an exception if all fields of one of the exceptions fit it.
func TestExceptionsOfAPolicyAndOfARule(t *testing.T) {
	const except = `"except": [
		{"ip:address": ["198.51.100.0/24", "::ffff:203.0.113.9", "2001:db8::/32"]},
		{"hosts": ["Status.test"], "methods": ["get", "HEAD"]},
		{"pathExact": "/health", "ip:address": ["10.0.0.0/8"]},
		{"pathPrefix": "/static"}]`
	for name, policy := range map[string]string{
		"rule":   jsonRules("", jsonRule("r", `["ip:address"]`, 1, except)),
		"policy": jsonRules(except, jsonRule("r", "[]", 1, "")),
		"bundle": `{"policies": [{"id": "a", "spec": {"selector": {"methods": ["GET", "PUT"]},
			"rules": [` + jsonRule("r", `["ip:address/64,/48"]`, 1, "") + `]}}], ` + except + `}`,
	} {
		s := newSite(t, policy)
		for _, c := range []struct {
			address string
			lines   []string
			limited bool
		}{
			{"192.0.2.1", nil, true},
			{"198.51.100.255", nil, false}, {"198.51.101.0", nil, true},
			{"203.0.113.9", nil, false}, {"::ffff:203.0.113.9", nil, false},
			{"64:ff9b::cb00:7109", nil, false},
			{"2001:db8:ffff::1", nil, false}, {"2001:db9::1", nil, true}, {"", nil, true},
			{"192.0.2.1", []string{"X-Forwarded-For: 198.51.100.1", "Forwarded: for=198.51.100.1"}, true},
			{"192.0.2.1", []string{"GET", "Host: status.test"}, false},
			{"192.0.2.1", []string{"GET", "Host: STATUS.test.:8080"}, false},
			{"192.0.2.1", []string{"PUT", "Host: status.test"}, true},
			{"192.0.2.1", []string{"GET", "Host: xstatus.test"}, true},
			{"192.0.2.1", []string{"get", "Host: status.test"}, true},
			{"10.9.9.9", []string{"/health"}, false}, {"10.9.9.9", []string{"//./health"}, true},
			{"10.9.9.9", []string{"/health/"}, true}, {"10.9.9.9", []string{"/healt%68"}, true},
			{"192.0.2.1", []string{"/health"}, true},
			{"192.0.2.1", []string{"/static/x?/y"}, false}, {"192.0.2.1", []string{"/static"}, true},
			{"192.0.2.1", []string{"/static/%78"}, false}, {"192.0.2.1", []string{"/%73tatic/x"}, true},
			{"192.0.2.1", []string{"/static/../x"}, true}, {"192.0.2.1", []string{"/static/..%2fx"}, true},
			{"192.0.2.1", []string{"/x/..;/static/"}, true}, {"192.0.2.1", []string{"/static%2fx"}, true},
			{"192.0.2.1", []string{"/static%5cx"}, true}, {"192.0.2.1", []string{"/static;a/x"}, true},
		} {
			r := by(c.address, c.lines...)
			r.Host = r.Header.Get("Host")
			delete(r.Header, "Host")
			if got := s.applied(r) != ""; got != c.limited {
				t.Errorf("%s: %s %q is limited: %v", name, c.address, c.lines, got)
			}
			if w := s.send(r); !c.limited && (w.Code != http.StatusOK || len(w.Header()) > 0) {
				t.Errorf("%s: %s %q: status %d, header %v", name, c.address, c.lines, w.Code, w.Header())
			}
		}
	}
}

// A rule does not apply to its exceptions, as if its match did not hold: the next rule may.
func TestTheNextRuleAppliesToAnException(t *testing.T) {
	const office, hidden = `"except": [{"ip:address": ["192.0.2.0/24"]}]`, `"mode": "shadow", `
	a, b := jsonRule("a", `["header:k"]`, 1, office), jsonRule("b", `["header:k"]`, 1, "")
	twice := jsonRule("twice", `["header:k"]`, 1, `"match": {"header:x": 1}, `+office)
	fallback := `"fallback_limit": ` + jsonRule("rest", "[]", 1, "")
	once, below := []string{"K: k", "X: 1"}, `"selector": {"pathPrefix": "/v1/"}`
	reject := jsonRule("a", `["header:k"]`, 1, `"on_missing": "reject", `+office)
	for _, c := range []struct {
		policy         string
		lines          []string
		others, office string
	}{
		{jsonRules("", a, b), once, "a b", "b"}, // a group
		{jsonRules("", twice, b), once, "twice", "b"},
		{jsonRules("", twice, b), []string{"K: k", "X: 1", "X: 2"}, "twice!", "b"},
		{jsonRules(fallback, twice), []string{"K: k", "X: 1", "X: 2"}, "twice!", "rest"},
		{jsonRules("", a, b), []string{"K: k", "K: l"}, "a! b!", "b!"},
		{jsonRules(`"evaluation": "first_match"`, a, b), once, "a", "b"},
		{jsonRules(`"evaluation": "all_match"`, a, b), once, "a b", "b"},
		{jsonRules(fallback, a), once, "a", "rest"},
		{jsonRules(fallback, jsonRule("a", `["header:k"]`, 1, hidden+office)), once, "(a) rest", "rest"},
		{jsonRules(below, a, b), []string{"/v1/..%2fx", "K: k"}, "a!", "b!"},
		{jsonRules(below, a), []string{"CONNECT", "/v1/../x", "K: k"}, "a!", ""},
		{jsonRules("", reject), nil, "a!", ""},
	} {
		s := newSite(t, c.policy)
		others := s.applied(by("198.51.100.1", c.lines...))
		office := s.applied(by("192.0.2.9", c.lines...))
		if others != c.others || office != c.office {
			t.Errorf("%s\n%q: %q for others and %q for the office, want %q and %q", c.policy, c.lines,
				others, office, c.others, c.office)
		}
	}
}

// An exception is in no count, and settles nothing. A change of the exceptions keeps the buckets.
func TestExceptionsCountNowhere(t *testing.T) {
	policy := func(network string) string {
		const rule = `{"name": %q, "limit_keys": [], "mode": %q, "except": [{"ip:address": [%q]}],
			"algorithm_config": {"rps": 0.001, "burst": 5, "cost_source": "response:header:used",
				"tiers": {"by": "header:plan", "limits": {"gold": {"rps": 0.001, "burst": 9}}}}}`
		return jsonRules("", sprintf(rule, "r", "enforce", network),
			sprintf(rule, "s", "shadow", network))
	}
	s := newSite(t, policy("192.0.2.0/24"))
	s.handler = s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Used", "2")
	}))
	wants(t, s.send(by("192.0.2.1", "Plan: gold")), "RateLimit: ")
	for _, st := range s.Stats() {
		if st.Granted+st.ShadowGranted+st.Settled != 0 || st.Table.Keys != 0 {
			t.Errorf("%+v", st)
		}
	}
	wants(t, s.send(by("198.51.100.1")), "RateLimit-Remaining: 4")
	s.reload(policy("198.51.100.0/24"))
	wants(t, s.send(by("198.51.100.1")), "RateLimit-Remaining: ")
	wants(t, s.send(by("192.0.2.1")), "RateLimit-Remaining: 2")
}

func TestSelectorPicksPaths(t *testing.T) {
	for _, c := range []struct {
		selector Selector
		path     string
		want     bool
	}{
		{Selector{PathPrefix: "/v1"}, "/v1/x", true},
		{Selector{PathPrefix: "/v1"}, "/v1", false},
		{Selector{PathPrefix: "/v1"}, "/v10", false},
		{Selector{PathPrefix: "/"}, "/", true},
		{Selector{PathPrefix: "/"}, "", true},
		{Selector{PathPrefix: "/"}, "*", true},
		{Selector{PathExact: "/v1"}, "/v1/", false},
		{Selector{PathExact: "/v1/"}, "/v1/", true},
		{Selector{PathExact: "/a", PathPrefix: "/b"}, "/a", true},
		{Selector{PathExact: "/a", PathPrefix: "/b"}, "/b/x", true},
		{Selector{PathExact: "/a", PathPrefix: "/b"}, "/c", false},
		// Other spellings of the same path, in the policy and in the request.
		{Selector{PathPrefix: "//v1/./"}, "/v1/x", true},
		{Selector{PathExact: "/a/../v1"}, "/v1", true},
		{Selector{PathPrefix: "/v1"}, "/./v1//x", true},
		{Selector{PathPrefix: "/v1"}, "/v1/..", false},
		{Selector{PathPrefix: "/v1"}, "v1/x", true},
		// Parameters before the last segment.
		{Selector{PathPrefix: "/v1/"}, "/v1;a=b/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;a=b;c/x;d", true},
		{Selector{PathPrefix: "/v1/x"}, "/v1;a/x;b//y", true},
		{Selector{PathPrefix: "/v1/"}, "/y;a/../v1;b/x", true},
		{Selector{PathPrefix: "/v1/"}, "/v1;a", false},
		{Selector{PathExact: "/v1/x"}, "/v1;a/x", true},
		{Selector{PathExact: "/v1/x"}, "/v1;a/x;b", false},
		{Selector{PathExact: "/v1/x;b"}, "/v1;a/x;b", true},
	} {
		s := &set{Selector: normalized(c.selector, false)}
		r := &http.Request{URL: &url.URL{Path: c.path}}
		if got, _, _ := picks(&s.Selector, r, false); got != c.want {
			t.Errorf("%+v picks %q: %v", c.selector, c.path, got)
		}
	}
	r := &http.Request{URL: &url.URL{Path: "v1"}} // as of http.StripPrefix
	if _, _, plain := picks(&Selector{PathExact: "/v1"}, r, false); !plain {
		t.Error("a path without its slash is no exception")
	}
}

func TestSelectorPicksHostsAndMethods(t *testing.T) {
	s := &set{Selector: normalized(Selector{
		Hosts: []string{"A.example", "[::1]"}, Methods: []string{"POST", "put"},
	}, false)}
	for _, c := range []struct {
		method, host string
		want         bool
	}{
		{"POST", "a.example", true},
		{"PUT", "A.EXAMPLE:8080", true},
		{"POST", "a.example.", true},
		{"POST", "a.example:80:90", true}, // to servers that read up to the first colon
		{"POST", "[::1]:80", true},
		{"POST", "[0:0::1]:80", true},
		{"GET", "a.example", false},
		{"post", "a.example", true},
		{"POST", "b.example", false},
		{"POST", "", false},
	} {
		r := &http.Request{Method: c.method, Host: c.host, URL: &url.URL{}}
		if got, _, _ := picks(&s.Selector, r, false); got != c.want {
			t.Errorf("%s %s: %v", c.method, c.host, got)
		}
	}
}
