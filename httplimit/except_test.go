package httplimit

import (
	"net/http"
	"testing"
)

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
			"rules": [` +
			jsonRule("r", `["ip:address/64,/48"]`, 1, "") + `]}}], ` + except + `}`,
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
			{"10.9.9.9", []string{"/health"}, false}, {"10.9.9.9", []string{"//./health"}, false},
			{"10.9.9.9", []string{"/health/"}, true}, {"10.9.9.9", nil, true},
			{"192.0.2.1", []string{"/health"}, true},
			{"192.0.2.1", []string{"/static/x?/y"}, false}, {"192.0.2.1", []string{"/static"}, true},
			{"192.0.2.1", []string{"/static/../x"}, true}, {"192.0.2.1", []string{"/static/..%2fx"}, true},
			{"192.0.2.1", []string{"/x/..;/static/"}, true}, {"192.0.2.1", []string{"/static%2fx"}, false},
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
		{jsonRules(below, a), []string{"/v1/..%2fx", "K: k"}, "a!", ""},
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

// An exception is in no count, settles nothing, and has the field of a cost that is hidden
// otherwise. A change of the exceptions keeps the buckets.
func TestExceptionsCountNowhere(t *testing.T) {
	policy := func(network string) string {
		const rule = `{"name": %q, "limit_keys": [], "mode": %q, "except": [{"ip:address": [%q]}],
			"algorithm_config": {"rps": 0.001, "burst": 5, "cost_source": "response:header:used",
				"hide_cost_header": true, "tiers": {"by": "header:plan", "limits": {
					"gold": {"rps": 0.001, "burst": 9}}}}}`
		return jsonRules("", sprintf(rule, "r", "enforce", network),
			sprintf(rule, "s", "shadow", network))
	}
	s := newSite(t, policy("192.0.2.0/24"))
	s.handler = s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Used", "2")
	}))
	w := s.send(by("192.0.2.1", "Plan: gold"))
	wants(t, w, "Used: 2", "RateLimit: ")
	for _, st := range s.Stats() {
		if st.Granted+st.ShadowGranted+st.Settled != 0 || st.Table.Keys != 0 {
			t.Errorf("%+v", st)
		}
	}
	wants(t, s.send(by("198.51.100.1")), "Used: ", "RateLimit-Remaining: 4")
	s.reload(policy("198.51.100.0/24"))
	wants(t, s.send(by("198.51.100.1")), "RateLimit-Remaining: ")
	wants(t, s.send(by("192.0.2.1")), "RateLimit-Remaining: 2")
}
