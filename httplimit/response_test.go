package httplimit

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestBindingRule(t *testing.T) {
	const config = `{"name": %q, "limit_keys": [%s], "algorithm": "token_bucket",
		"algorithm_config": {"rps": %s, "burst": %d}}`
	s := newSite(t, jsonRules("", sprintf(config, "slow", `"header:a"`, "0.1", 2),
		sprintf(config, "fast", `"header:b"`, "1", 2), sprintf(config, "wide", "", "1", 100)))
	// Granted: the first of the rules with the fewest tokens left.
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
	var refusals []string
	s.hooks.Refused = func(_ *http.Request, e Event) {
		refusals = append(refusals, e.Rule+" "+e.RetryAfter.String())
	}
	w = s.get("A: 3", "B: 3")
	if !slices.Equal(refusals, []string{"slow 10s"}) {
		t.Errorf("Refused got %v", refusals)
	}
	wants(t, w, "RateLimit-Limit: 2", "RateLimit-Remaining: 0")
	// The first of the rules with the longest wait.
	s = newSite(t, jsonRules("", jsonRule("a", "[]", 1, ""), jsonRule("b", "[]", 1, "")))
	s.hooks.Refused = func(_ *http.Request, e Event) { refusals = append(refusals[:0], e.Rule) }
	s.granted(1)
	if !slices.Equal(refusals, []string{"a"}) {
		t.Errorf("Refused got %v", refusals)
	}
}

func TestResetIsWhenOneMoreWholeTokenIsThere(t *testing.T) {
	for _, c := range []struct{ rps, cost, want string }{
		{"1", "1", "1"},
		{"100", "3.5", "1"},
		{"1.5", "0.1", "1"},
		{"0.1", "1", "10"},
		{"0.1", "0.1", "1"},
		{"0.1", "0.75", "8"},
		{"0.1", "1.1", "1"},
		{"0.1", "2", "10"},
		{"0.999", "1", "2"},
		{"0.3", "1", "4"},
		{"0.000000001", "1", "1000000000"},
	} {
		s := newSite(t, oneRule("[]", `"rps": `+c.rps+`, "burst": 900, "cost_source": "header:w"`))
		wants(t, s.get("W: "+c.cost), "RateLimit-Reset: "+c.want)
	}
	s := newSiteOf(t, tb.Limit{Capacity: 2, Tokens: 1, Per: 1500 * time.Millisecond})
	wants(t, s.get(), "RateLimit-Reset: 2")
}

// newSiteOf returns a site with a rule whose limit cannot be written in JSON.
func newSiteOf(t *testing.T, limit tb.Limit, opts ...Option) *site {
	s := newSite(t, jsonRule("x", "[]", 1, ""), opts...)
	if err := s.SetPolicy(Rules(Rule{Name: "r", Limit: limit})); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for _, c := range []struct{ rps, burst, cost, want string }{
		{"100", "200", "200", "2"}, // 200 tokens
		{"100", "200", "150", "1"}, // 100
		{"100", "200", "151", "2"}, // 102
		{"0.5", "3", "2", "2"},     // 1
		{"0.1", "3", "1.6", "2"},   // 0.2
		{"0.1", "3", "1.505", "1"}, // 0.01
	} {
		s := newSite(t, oneRule("[]", sprintf(`"rps": %s, "burst": %s, "fixed_cost": %s`, c.rps,
			c.burst, c.cost)), steady())
		s.get()
		wants(t, s.get(), "Retry-After: "+c.want, "RateLimit-Reset: "+c.want)
	}
}

func TestRefusedBody(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "query:n"`))
	s.get("/?n=2")
	w := s.get("/?n=1.5")
	want := details{
		"https://iana.org/assignments/http-problem-types#quota-exceeded",
		"Quota exceeded", 429,
		"Rule r has too few tokens left for this request, which costs 1.5.",
		[]string{"r"}, nil,
	}
	if p := problem(t, w); sprintf("%q", p) != sprintf("%q", want) {
		t.Errorf("%q\nwant %q", p, want)
	}
	// As much as the burst can fit.
	want.Detail = "Rule r has too few tokens left for this request, which costs 2."
	if p := problem(t, s.get("/?n=2")); p.Detail != want.Detail {
		t.Errorf("%q\nwant %q", p, want)
	}
}

func TestNoBodyForHEAD(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", "[]", 1, "")))
	s.get()
	if w := s.get("HEAD"); w.Code != http.StatusTooManyRequests || w.Body.Len() > 0 ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// A bucket that lacks a nanosecond refuses as any other.
func TestShortestWait(t *testing.T) {
	s := newSiteOf(t, tb.Limit{Capacity: 1, Tokens: 1, Per: time.Nanosecond}, steady())
	s.granted(1)
	_, _, refusal := s.Take(http.Header{}, request())
	if retry, ok := refusal.RetryAfter(); retry != time.Nanosecond || !ok {
		t.Errorf("%v, %v", retry, ok)
	}
}

// (cost − tokens)/rate, although no wait helps, but at most a day with the jitter. The body tells
// it from a wait that ends.
func TestCostAboveBurstFollowsTheFormula(t *testing.T) {
	const most = 16 * 60 * 60
	for _, c := range []struct {
		rps, before, cost string
		want              int64
	}{
		{"1", "0", "11", 1},
		{"1", "0", "15", 5},
		{"1", "4", "15", 9},
		{"1", "0.5", "10.2", 1},
		{"2", "3", "10.5", 2},
		{"0.1", "0", "10.3", 3},
		{"0.1", "5", "10.1", 51},
		{"1", "0", "57610", most},
		{"1", "0", "57611", most},
		{"76", "0", "1e9", most},
		{"1", "0", "1e300", most},
		{"1e-8", "0", "1e999", most},
		{"1e9", "0", "1e999", most},
	} {
		s := newSite(t, sprintf(`{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1ns",
			"algorithm_config": {"rps": %s, "burst": 10, "cost_source": "header:w"}}`, c.rps),
			WithFields(Fields{XRateLimit: true}))
		if c.before != "0" {
			s.get("W: " + c.before)
		}
		w := s.get("W: " + c.cost)
		retry, _ := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
		if retry < c.want || retry > c.want+(c.want+1)/2 {
			t.Errorf("%+v: Retry-After: %d", c, retry)
		}
		wants(t, w, sprintf("X-RateLimit-Reset: %d", s.now.Unix()+retry))
		p := problem(t, w)
		if !strings.Contains(p.Detail, "Rule r never has more than 10 tokens") {
			t.Errorf("%s", p.Detail)
		}
		if p.Retryable != false {
			t.Errorf("%+v: retryable is missing", c)
		}
		items(t, w, "RateLimit") // 1e300 must not break the field either
	}
}

// A wait that ends is said whole, however long it is.
func TestLongWaitsAreSaidWhole(t *testing.T) {
	for _, years := range []int64{1, 100, 190, 290} {
		per := time.Duration(years) * 365 * 24 * time.Hour
		s := newSiteOf(t, tb.Limit{Capacity: 1, Tokens: 1, Per: per})
		s.get()
		w := s.get()
		retry, _ := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
		if base := ceilSeconds(per); retry < base || retry > base+base/2 {
			t.Errorf("%d years: Retry-After: %d", years, retry)
		}
		if p := problem(t, w); p.Retryable != nil {
			t.Errorf("%d years: %+v", years, p)
		}
		_, _, refusal := s.Take(http.Header{}, request())
		if wait, ok := refusal.RetryAfter(); wait < per || !ok {
			t.Errorf("%d years: %v, %v", years, wait, ok)
		}
	}
}

// The binding rule is one whose tokens can never suffice, and Retry-After the longest wait.
func TestNoWaitHelpsBesideALongWait(t *testing.T) {
	s := newSite(t, jsonRules("",
		`{"name": "slow", "limit_keys": [], "algorithm_config": {"rps": 0.000001, "burst": 9}}`,
		`{"name": "small", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 2,
			"cost_source": "header:w"}}`), steady())
	for range 9 {
		s.get("W: 0.1")
	}
	w := s.get("W: 3")
	p := problem(t, w)
	wants(t, w, "Retry-After: 1000066", "RateLimit-Limit: 2") // 1e6, and the jitter
	if p.Retryable != false || len(p.Violated) != 2 || !strings.Contains(p.Detail, "never fit") {
		t.Errorf("%+v", p)
	}
}

func TestFieldsAreStructured(t *testing.T) {
	// A name may have every printable character.
	all := ""
	for c := ' '; c <= '~'; c++ {
		all += string(c)
	}
	for i, name := range []string{all, all, `"`, `\`} {
		s := newSite(t, jsonRules("", jsonRule("x", "[]", 1, ""), sprintf(`{"name": %q,
			"limit_keys": [], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 0.000000001, "burst": 1}}`, name)),
			WithFields(Fields{Policy: true}))
		for range min(i, 1) {
			s.get() // so that the next one is refused
		}
		w := s.get()
		for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
			list, err := httpsfv.UnmarshalList(w.Header().Values(field))
			if err != nil || list[1].(httpsfv.Item).Value != name {
				t.Errorf("%s: %v %v", field, err, list)
			}
			// The text is the one that httpsfv writes.
			if text, err := httpsfv.Marshal(list); err != nil || text != w.Header().Get(field) {
				t.Errorf("%s: %s, want %s", field, w.Header().Get(field), text)
			}
		}
		if w.Code == http.StatusTooManyRequests && !slices.Contains(problem(t, w).Violated, name) {
			t.Errorf("%s", w.Body)
		}
	}
}

func TestUpstreamFieldsAreDropped(t *testing.T) {
	h := http.Header{"RateLimit-LIMIT": nil, "X-Rate-Limit": nil} // an upstream spells freely
	for _, f := range []string{
		"RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-",
		"X-RateLimit-Used", "Retry-After",
	} {
		h.Set(f, "77")
	}
	DropFields(h)
	want := []string{"Ratelimit", "Ratelimit-Policy", "Retry-After", "X-Rate-Limit"}
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) {
		t.Errorf("fields %q stay, want %q", got, want)
	}
}

// nest returns a handler with one limiter in another, for policies of one rule each.
func nest(t *testing.T, outer, inner string, seen *Decision) http.Handler {
	clock := WithLimiterOptions(tb.WithClock(func() time.Time { return time.Unix(1_800_000_000, 0) }))
	var h http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		*seen, _ = FromContext(r.Context())
	})
	for _, rule := range []string{inner, outer} {
		both := WithFields(Fields{Policy: true, XRateLimit: true})
		h = mustNew(t, rule, clock, steady(), both, WithContext()).Middleware(h)
	}
	return h
}

// The client sees the rules of both limiters, and the fields of the tightest.
func TestNestedLimiters(t *testing.T) {
	narrow, wide := jsonRule("narrow", "[]", 3, ""), jsonRule("wide", "[]", 50, "")
	for _, c := range []struct {
		outer, inner string
		items        []string
		refused      []string
	}{
		{narrow, wide, []string{"narrow r=2 t=2", "wide r=49 t=49"}, []string{"narrow r=0 t=1"}},
		{wide, narrow, []string{"wide r=49 t=49", "narrow r=2 t=2"},
			[]string{"wide r=46 t=46", "narrow r=0 t=1"}},
	} {
		var seen Decision
		h := nest(t, c.outer, c.inner, &seen)
		send := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request())
			return w
		}
		w := send()
		wants(t, w, "RateLimit-Limit: 3", "RateLimit-Remaining: 2", "RateLimit-Reset: 1",
			"X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 1800000001")
		if got := items(t, w, "RateLimit"); !slices.Equal(got, c.items) {
			t.Errorf("%q, want %q", got, c.items)
		}
		if got := items(t, w, "RateLimit-Policy"); len(got) != 2 || got[0][:4] != c.items[0][:4] {
			t.Errorf("%q", got)
		}
		if seen.Rule != "narrow" || seen.Remaining != 2 {
			t.Errorf("the handler sees %+v", seen)
		}
		send()
		send()
		w = send()
		if w.Code != http.StatusTooManyRequests {
			t.Errorf("status %d", w.Code)
		}
		wants(t, w, "RateLimit-Limit: 3", "RateLimit-Remaining: 0", "RateLimit-Reset: 1",
			"X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 0", "Retry-After: 1")
		if got := items(t, w, "RateLimit"); !slices.Equal(got, c.refused) {
			t.Errorf("%q, want %q", got, c.refused)
		}
	}
	// Of two with as many tokens left, the outer one counts.
	var seen Decision
	w := httptest.NewRecorder()
	nest(t, oneRule("[]", `"rps": 1, "burst": 4, "fixed_cost": 2`), jsonRule("inner", "[]", 3, ""),
		&seen).ServeHTTP(w, request())
	wants(t, w, "RateLimit-Limit: 4", "RateLimit-Remaining: 2")
	if seen.Rule != "r" {
		t.Errorf("the handler sees %+v", seen)
	}
}
