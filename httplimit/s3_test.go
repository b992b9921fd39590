package httplimit

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
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
	if s := newSite(t, jsonRules("", rules...)); s.applying(k, tenant, plan) != "gold-s gold-m tenant global" {
		t.Error("ladders are not the default")
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
	if got := s.Explain(request("/v1/")); got[0].Decision.Allowed || got[1].Decision.Allowed {
		t.Errorf("%+v", got)
	}
}

func TestS3AllOrNothing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("user", `["header:u"]`, 3, ""),
		jsonRule("tenant", `["header:t"]`, 5, ""), jsonRule("global", `[]`, 9, "")))
	left := func(u string) (all []int) {
		for _, e := range s.Explain(request("U: "+u, "T: 1")) {
			// What is left now, and not after the request.
			n := e.Decision.Remaining
			if e.Decision.Allowed {
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
	for i, want := range []RuleStats{{Granted: 5, Refused: 6}, {Granted: 5, Refused: 1}, {Granted: 5}} {
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
	if s.seen.Rule != "slow" || s.seen.Remaining != 1 || !s.seen.Allowed || s.seen.Limit.Capacity != 2 {
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
	s.hooks.Refused = func(_ *http.Request, e Event) { told = append(told, e.Rule+" "+e.RetryAfter.String()) }
	w = s.get("A: 3", "B: 3")
	if !slices.Equal(told, []string{"slow 10s"}) {
		t.Errorf("told of %v", told)
	}
	wants(t, w, "RateLimit-Limit: 2", "RateLimit-Remaining: 0")
}

func TestS3ShadowNeverChangesTheAnswer(t *testing.T) {
	enforced := jsonRule("free", `["header:k"]`, 3, "")
	shadow := jsonRule("trial", `["header:k"]`, 1, `"mode": "shadow"`)
	var told []string
	hooks := WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) {
		told = append(told, sprintf("%s %v %v %s", e.Rule, e.Shadow, e.Allowed, e.Key))
	}})
	with := newSite(t, jsonRules("", shadow, enforced), hooks)
	without := newSite(t, jsonRules("", enforced))
	for i := range 5 {
		a, b := with.get("K: 1"), without.get("K: 1")
		if a.Code != b.Code || sprintf("%v", a.Header()) != sprintf("%v", b.Header()) ||
			a.Body.String() != b.Body.String() || with.seen != without.seen {
			t.Errorf("request %d: %d %v\nwant %d %v", i, a.Code, a.Header(), b.Code, b.Header())
		}
	}
	want := []string{"trial true true header:k=1", "trial true false header:k=1", "trial true false header:k=1"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	st := with.Stats()
	if st[0].ShadowGranted != 1 || st[0].ShadowRefused != 2 || st[0].Granted != 0 || st[0].Refused != 0 {
		t.Errorf("%+v", st[0])
	}
	if st[1].Granted != 3 || st[1].Refused != 2 || st[1].ShadowRefused != 0 {
		t.Errorf("%+v", st[1])
	}
}

// A shadow rule is where it would be if it were none, and the others where they are
// without it.
func TestS3ShadowInALadder(t *testing.T) {
	const gold = `"match": {"header:plan": "gold"}`
	keys := `["header:k"]`
	for _, c := range []struct {
		rules      []string
		evaluation string
		want       string // for gold
	}{
		{[]string{jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold), jsonRule("f", keys, 1, "")},
			"ladders", "g (t)"},
		{[]string{jsonRule("g", keys, 1, gold), jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("f", keys, 1, "")},
			"ladders", "g"},
		{[]string{jsonRule("g", keys, 1, gold+`, "mode": "shadow"`), jsonRule("t", keys, 1, `"mode": "shadow"`),
			jsonRule("f", keys, 1, "")}, "ladders", "f (g)"},
		{[]string{jsonRule("f", keys, 1, ""), jsonRule("t", keys, 1, `"mode": "shadow"`)}, "ladders", "f (t)"},
		{[]string{jsonRule("t", "[]", 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold), jsonRule("f", keys, 1, "")},
			"first_match", "g (t)"},
		{[]string{jsonRule("g", keys, 1, gold), jsonRule("t", "[]", 1, `"mode": "shadow"`)}, "first_match", "g"},
		{[]string{jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold)}, "all_match", "g (t)"},
	} {
		s := newSite(t, jsonRules(sprintf(`"evaluation": %q`, c.evaluation), c.rules...))
		if got := s.applying("K: 1", "Plan: gold"); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.evaluation, c.rules, got, c.want)
		}
	}
}

func TestS3ShadowSetsAndMissingKeys(t *testing.T) {
	s := newSite(t, jsonRules(`"mode": "shadow"`, jsonRule("a", "[]", 1, ""),
		jsonRule("b", `["header:k"]`, 1, `"on_missing": "reject"`)))
	for range 3 {
		if w := s.get(); w.Code != http.StatusOK || len(w.Header()) > 0 {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	if st := s.Stats(); st[0].ShadowRefused != 2 || st[1].ShadowRefused != 3 {
		t.Errorf("%+v", st)
	}
}

func TestS3FallbackAppliesIfNoMatchHeld(t *testing.T) {
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
		{jsonRules(fallback, gold), []string{"Site: 1", "Plan: gold"}, ""}, // its match held
		{jsonRules(fallback, gold), []string{"Site: 1", "K: 1"}, "fallback_limit"},
		{jsonRules(fallback, gold), []string{"K: 1"}, ""}, // its own does not
		{jsonRules(fallback, trial), []string{"Site: 1", "K: 1"}, "(trial) fallback_limit"},
		{jsonRules(`"mode": "shadow",`+fallback, trial), []string{"Site: 1", "K: 1"}, "(trial)"},
		{jsonRules(`"mode": "shadow",` + fallback), []string{"Site: 1"}, "(fallback_limit)"},
	} {
		if got := newSite(t, c.policy).applying(c.request...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.policy, c.request, got, c.want)
		}
	}
}

// Requests of many goroutines on a few rules: no rule grants more than its burst, and each
// request that was granted took from all of them.
func TestS3AllOrNothingOfManyAtOnce(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("address", `["ip:address"]`, 700, ""),
		jsonRule("key", `["header:k"]`, 300, ""), jsonRule("both", `["ip:address", "header:k"]`, 250, "")))
	const goroutines, each = 8, 200
	done := make(chan int)
	for g := range goroutines {
		go func() {
			granted := 0
			for range each {
				if s.send(request(sprintf("K: %d", g%4))).Code == http.StatusOK {
					granted++
				}
			}
			done <- granted
		}()
	}
	total := 0
	for range goroutines {
		total += <-done
	}
	// A request that met one which was being undone may have been refused, so what is
	// left may be more than nothing, but no token is lost.
	for _, st := range s.Stats() {
		if st.Granted != uint64(total) {
			t.Errorf("%s granted %d of %d", st.Rule, st.Granted, total)
		}
	}
	if total > 700 {
		t.Errorf("%d granted, of 700", total)
	}
	for i := 700 - total; i > 0; i-- {
		if w := s.get("K: other"); i <= 250 && w.Code != http.StatusOK {
			t.Fatalf("%d of 700 were granted, and %d more are refused", total, i)
		}
	}
}

func TestS3RulesWithOtherLimiters(t *testing.T) {
	// Two rules have limiters that can only be asked; one is of tb/cas.
	var asked []string
	fail := map[string]error{}
	limiters := WithLimiter(func(r Rule) (tb.Limiter, error) {
		if r.Name == "cas" {
			return nativeLimiter(r, time.Unix(1_800_000_000, 0))
		}
		return &otherLimiter{rule: r, asked: &asked, fail: fail}, nil
	})
	s := newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 3, ""), jsonRule("cas", `["header:k"]`, 9, ""),
		jsonRule("two", `["header:k"]`, 2, "")), limiters)
	s.granted(2, "K: a") // and the third is refused by two
	if want := []string{"one 1", "two 1", "one 1", "two 1", "one 1", "two 1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	if e := s.Explain(request("K: a")); e[1].Decision.Remaining != 9-2-1 {
		t.Errorf("what the limiter of tb/cas was charged is not given back: %+v", e[1])
	}
	for i, want := range []uint64{2, 2, 2} {
		if got := s.Stats()[i].Granted; got != want {
			t.Errorf("rule %d granted %d, want %d", i, got, want)
		}
	}
	// If one of tb/cas refuses, nobody else is asked.
	s = newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 3, ""), jsonRule("cas", `["header:k"]`, 1, "")), limiters)
	asked = nil
	s.granted(1, "K: a")
	if want := []string{"one 1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	if w := s.get("K: a"); w.Header().Get("RateLimit") != `"cas";r=0;t=1` {
		t.Errorf("%v", w.Header())
	}
}
