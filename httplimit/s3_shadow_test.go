package httplimit

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestS3ShadowNeverChangesTheAnswer(t *testing.T) {
	enforced := jsonRule("free", `["header:k"]`, 3, "")
	shadow := jsonRule("trial", `["header:k"]`, 1, `"mode": "shadow"`)
	var told []string
	hooks := WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) {
		told = append(told, sprintf("%s %v %v %s", e.Rule, e.Shadow, e.Allowed, FormatKey(e.Key)))
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
	want := []string{"trial true true header:k=1", "trial true false header:k=1",
		"trial true false header:k=1"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	st := with.Stats()
	if st[0].ShadowGranted != 1 || st[0].ShadowRefused != 2 || st[0].Granted+st[0].Refused != 0 {
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
		{[]string{jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold),
			jsonRule("f", keys, 1, "")},
			"ladders", "g (t)"},
		{[]string{jsonRule("g", keys, 1, gold), jsonRule("t", keys, 1, `"mode": "shadow"`),
			jsonRule("f", keys, 1, "")},
			"ladders", "g"},
		{[]string{jsonRule("g", keys, 1, gold+`, "mode": "shadow"`), jsonRule("t", keys, 1,
			`"mode": "shadow"`),
			jsonRule("f", keys, 1, "")}, "ladders", "f (g)"},
		{[]string{jsonRule("f", keys, 1, ""), jsonRule("t", keys, 1, `"mode": "shadow"`)},
			"ladders", "f (t)"},
		{[]string{jsonRule("t", "[]", 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold),
			jsonRule("f", keys, 1, "")},
			"first_match", "g (t)"},
		{[]string{jsonRule("g", keys, 1, gold), jsonRule("t", "[]", 1, `"mode": "shadow"`)},
			"first_match", "g"},
		{[]string{jsonRule("t", keys, 1, `"mode": "shadow"`), jsonRule("g", keys, 1, gold)},
			"all_match", "g (t)"},
	} {
		s := newSite(t, jsonRules(sprintf(`"evaluation": %q`, c.evaluation), c.rules...))
		if got := s.applying("K: 1", "Plan: gold"); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.evaluation, c.rules, got, c.want)
		}
	}
}

func TestS3ShadowSetsAndMissingKeys(t *testing.T) {
	var told Event
	s := newSite(t, jsonRules(`"mode": "shadow"`, jsonRule("a", "[]", 1, ""),
		jsonRule("b", `["header:k"]`, 1, `"on_missing": "reject"`)),
		WithHooks(Hooks{Shadow: func(_ *http.Request, e Event) { told = e }}))
	for range 3 {
		if w := s.get(); w.Code != http.StatusOK || len(w.Header()) > 0 {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	if st := s.Stats(); st[0].ShadowRefused != 2 || st[1].ShadowRefused != 3 {
		t.Errorf("%+v", st)
	}
	if told.Rule != "b" || told.Allowed || told.RetryAfter != tb.Never {
		t.Errorf("told %+v", told)
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
		jsonRule("key", `["header:k"]`, 300, ""), jsonRule("both", `["ip:address", "header:k"]`,
			250, "")))
	const goroutines, each = 8, 200
	h := s.Middleware(http.HandlerFunc(nothing))
	done := make(chan int)
	for g := range goroutines {
		go func() {
			granted := 0
			for range each {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, request(sprintf("K: %d", g%4))); w.Code == http.StatusOK {
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
	s := newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 3, ""), jsonRule("cas",
		`["header:k"]`, 9, ""),
		jsonRule("two", `["header:k"]`, 2, "")), limiters)
	s.granted(2, "K: a") // and the third is refused by two
	if want := []string{"one 1", "two 1", "one 1", "two 1", "one 1",
		"two 1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	if e := s.Explain(request("K: a")); e[1].Remaining != 9-2-1 {
		t.Errorf("what the limiter of tb/cas was charged is not given back: %+v", e[1])
	}
	for i, want := range []uint64{2, 2, 2} {
		if got := s.Stats()[i].Granted; got != want {
			t.Errorf("rule %d granted %d, want %d", i, got, want)
		}
	}
	// They know of whole tokens only.
	asked = nil
	s = newSite(t, oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "header:w"`), limiters)
	for _, cost := range []string{"0.1", "2.5", "3", "3e9", "1e300"} {
		s.get("W: " + cost)
	}
	if want := []string{"r 1", "r 3", "r 3", "r 2147483647",
		"r 2147483647"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	// If one of tb/cas refuses, nobody else is asked.
	s = newSite(t, jsonRules("", jsonRule("one", `["header:k"]`, 3, ""), jsonRule("cas",
		`["header:k"]`, 1, "")), limiters)
	asked = nil
	s.granted(1, "K: a")
	if want := []string{"one 1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	if w := s.get("K: a"); w.Header().Get("RateLimit") != `"cas";r=0;t=1` {
		t.Errorf("%v", w.Header())
	}
}
