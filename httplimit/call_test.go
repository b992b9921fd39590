package httplimit

import (
	"net/http"
	"reflect"
	"testing"
)

// A panic of the application's code is not caught. It charges nothing before the decision, and
// later requests are not affected.
func TestPanicsOfTheApplication(t *testing.T) {
	for _, where := range []string{"extractor", "claims", "limiter", "granted", "refused", "shadow"} {
		boom := func(here string, r *http.Request) {
			if here == where && r.Header.Get("Boom") != "" {
				panic(where)
			}
		}
		armed := false
		s := newSite(t, jsonRules("", jsonRule("first", `["x", "jwt:y"]`, 5, `"on_missing": "shared"`),
			jsonRule("other", "[]", 4, ""), jsonRule("trial", "[]", 5, `"mode": "shadow"`)),
			WithExtractor("x", func(r *http.Request) string { boom("extractor", r); return "1" }),
			WithClaims(func(r *http.Request) map[string]any { boom("claims", r); return nil }),
			WithStore(referenceStore{t: t, before: func(step, _ string) error {
				if step == "take all" && where == "limiter" && armed {
					panic(where)
				}
				return nil
			}}),
			WithHooks(Hooks{
				Granted: func(r *http.Request, _ Event) { boom("granted", r) },
				Refused: func(r *http.Request, _ Event) { boom("refused", r) },
				Shadow:  func(r *http.Request, _ Event) { boom("shadow", r) },
			}))
		try := func() (caught any) {
			defer func() { armed, caught = false, recover() }()
			armed = true
			s.get("Boom: 1")
			return nil
		}
		used := 0
		if where == "refused" {
			s.granted(4)
			used = 4
		}
		if caught := try(); sprint(caught) != where {
			t.Fatalf("%s: panic %v", where, caught)
		}
		if where == "granted" || where == "shadow" { // called after the request was charged
			used = 1
		}
		if e := s.Explain(request())[0]; e.Remaining != 5-used-1 {
			t.Errorf("%s: %+v", where, e)
		}
		s.granted(4 - used)
	}
}

// A call in the pool refers neither to a request nor to a limiter of an old policy.
func TestEndedCallsKeepNothing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("a", `["header:k"]`, 5, ""),
		jsonRule("b", `["ip:address"]`, 5, ""), jsonRule("t", "[]", 5, `"mode": "shadow"`)))
	c := s.begin(request("K: 1"))
	if c.decide() != granted || len(c.entries) != 3 || len(c.charges) != 2 {
		t.Fatalf("%+v", c)
	}
	c.end()
	if c.r != nil || c.policy != nil || c.claims != nil || c.address.IsValid() {
		t.Errorf("%+v", c)
	}
	for _, e := range c.entries[:cap(c.entries)] {
		if !reflect.ValueOf(e).IsZero() {
			t.Errorf("%+v", e)
		}
	}
	for _, charge := range c.charges[:cap(c.charges)] {
		if charge != nil {
			t.Errorf("%+v", charge)
		}
	}
}

// Counts of calls on several processors are in several copies, and Stats adds them up.
func TestCountsAreAddedUp(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 100`))
	for range 2 * stripes {
		c := s.begin(request())
		if c.decide() != granted { // the call is not put back, so the next one is another
			t.Fatal("refused")
		}
	}
	if st := s.Stats()[0]; st.Granted != 2*stripes {
		t.Errorf("%+v", st)
	}
	for i := range stripes {
		if n := s.policy.Load().rules[0].counts[i].granted.Load(); n != 2 {
			t.Errorf("copy %d has %d", i, n)
		}
	}
}
