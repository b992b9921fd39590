package httplimit

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Section 3: which rules apply.

// applying returns the names of the rules that apply, those of shadow rules in brackets.
func (s *site) applying(lines ...string) string {
	var names []string
	for _, e := range s.Explain(request(lines...)) {
		name := e.Rule
		if e.Shadow {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestS3Evaluation(t *testing.T) {
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

// The names of header fields know no upper and lower case, so neither do keys of them: an
// enterprise key must not fall under the limit for all because of how it is spelled.
func TestS3SpellingsOfAHeaderAreOneLadder(t *testing.T) {
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

// The pairs of a match have no order.
func TestS3SameMatchIsOneGroup(t *testing.T) {
	const match = `"match": {"query:a": 1, "query:b": 2, "query:c": 3, "query:d": 4, "query:e": 5}`
	for range 10 {
		s := newSite(t, jsonRules("", jsonRule("a", "[]", 5, match), jsonRule("b", "[]", 5, match),
			jsonRule("c", "[]", 5, "")))
		if got := s.applying("/?e=5&d=4&c=3&b=2&a=1"); got != "a b" {
			t.Fatal(got)
		}
	}
}

func TestS3SetsDoNotKnowOfEachOther(t *testing.T) {
	s := newSite(t, sprintf(`{"policies": [
		{"id": "a", "spec": {"selector": {"pathPrefix": "/v1"}, "rules": [%[1]s]}},
		{"id": "b", "spec": {"rules": [%[1]s, %[2]s]}}]}`,
		jsonRule("r", `["ip:address"]`, 2, ""), jsonRule("q", `["header:q"]`, 2, "")))
	for path, want := range map[string]string{"/": "b/r q", "/v1/x": "a/r b/r q"} {
		if got := s.applying(path, "Q: 1"); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// Each has its own bucket.
	s.granted(2, "/v1/")
	if got := s.Explain(request("/v1/")); got[0].Allowed || got[1].Allowed {
		t.Errorf("%+v", got)
	}
}

func TestS3AllOrNothing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("user", `["header:u"]`, 3, ""),
		jsonRule("tenant", `["header:t"]`, 5, ""), jsonRule("global", `[]`, 9, "")))
	left := func(u string) (all []int) {
		for _, e := range s.Explain(request("U: "+u, "T: 1")) {
			// What is left now, and not after the request.
			n := e.Remaining
			if e.Allowed {
				n++
			}
			all = append(all, n)
		}
		return all
	}
	s.granted(3, "U: a", "T: 1")
	for range 5 {
		s.get("U: a", "T: 1") // refused for the user: tenant and global are not charged
	}
	if got := left("a"); !slices.Equal(got, []int{0, 2, 6}) {
		t.Errorf("%v are left", got)
	}
	s.granted(2, "U: b", "T: 1") // refused for the tenant: the user is not charged
	if got := left("b"); !slices.Equal(got, []int{1, 0, 4}) {
		t.Errorf("%v are left", got)
	}
	for i, want := range []RuleStats{{Granted: 5, Refused: 6}, {Granted: 5, Refused: 1},
		{Granted: 5}} {
		if got := s.Stats()[i]; got.Granted != want.Granted || got.Refused != want.Refused {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestS3BindingRule(t *testing.T) {
	const config = `{"name": %q, "limit_keys": [%s], "algorithm": "token_bucket",
		"algorithm_config": {"rps": %s, "burst": %d}}`
	s := newSite(t, jsonRules("", sprintf(config, "slow", `"header:a"`, "0.1", 2),
		sprintf(config, "fast", `"header:b"`, "1", 2), sprintf(config, "wide", "", "1", 100)))
	// Granted: the fewest tokens left, the first of those that have as many.
	s.get("A: 1")
	w := s.get("A: 2", "B: 2")
	if d := s.seen; d.Rule != "slow" || d.Remaining != 1 || !d.Allowed || d.Limit.Capacity != 2 {
		t.Errorf("%+v", s.seen)
	}
	wants(t, w, "RateLimit-Limit: 2", "RateLimit-Remaining: 1", "RateLimit-Reset: 10")
	s.get("B: 3")
	s.get("A: 3", "B: 3")
	if s.seen.Rule != "fast" || s.seen.Remaining != 0 {
		t.Errorf("%+v", s.seen)
	}
	// Refused: the longest wait.
	s.get("A: 3")
	var told []string
	s.hooks.Refused = func(_ *http.Request, e Event) {
		told = append(told,
			e.Rule+" "+e.RetryAfter.String())
	}
	w = s.get("A: 3", "B: 3")
	if !slices.Equal(told, []string{"slow 10s"}) {
		t.Errorf("told of %v", told)
	}
	wants(t, w, "RateLimit-Limit: 2", "RateLimit-Remaining: 0")
	// The first of those that have as long.
	s = newSite(t, jsonRules("", jsonRule("a", "[]", 1, ""), jsonRule("b", "[]", 1, "")))
	s.hooks.Refused = func(_ *http.Request, e Event) { told = append(told[:0], e.Rule) }
	s.granted(1)
	if !slices.Equal(told, []string{"a"}) {
		t.Errorf("told of %v", told)
	}
}
