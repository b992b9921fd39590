package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// reporting is a policy with a bucket of 100 tokens and an estimate of 10.
func reporting(source, more string) string {
	return oneRule("[]", `"rps": 1, "burst": 100, "default_cost": 10,
		"cost_source": "`+source+`"`+more)
}

// left returns the tokens in the bucket of the first rule that applies to a request.
func (s *site) left(lines ...string) float64 {
	s.t.Helper()
	e := s.Explain(request(lines...))
	if len(e) == 0 {
		s.t.Fatal("no rule applies")
	}
	return e[0].Level.Tokens
}

// answer makes f the handler behind the limiter.
func (s *site) answer(f http.HandlerFunc) { s.handler = s.Middleware(f) }

// settled checks how the requests of the first rule were settled.
func (s *site) settled(settled, estimated uint64) {
	s.t.Helper()
	if st := s.Stats()[0]; st.Settled != settled || st.Estimated != estimated {
		s.t.Errorf("%d settled and %d estimated, want %d and %d", st.Settled, st.Estimated, settled,
			estimated)
	}
}

func TestCostReportedInTheResponse(t *testing.T) {
	for _, c := range []struct {
		bounds string
		values []string
		cost   float64 // 10 is the estimate
		known  bool
	}{
		{"", []string{"25"}, 25, true},
		{"", []string{"2.5"}, 2.5, true},
		{"", []string{"1e1"}, 10, true},
		{"", []string{"0"}, 0, true},
		{"", []string{"0.0e5"}, 0, true},
		{"", []string{"150"}, 150, true},
		{"", []string{"1e17"}, 200, true}, // as much as the bucket can owe
		{"", []string{"1" + strings.Repeat("0", 300)}, 200, true},
		{"", nil, 10, false},
		{"", []string{""}, 10, false},
		{"", []string{"-5"}, 10, false},
		{"", []string{"-0"}, 10, false},
		{"", []string{"many"}, 10, false},
		{"", []string{"NaN"}, 10, false},
		{"", []string{"1e999"}, 10, false},
		{"", []string{"0x10"}, 10, false},
		{"", []string{"5, 6"}, 10, false},
		{"", []string{strings.Repeat("0", 1024) + "5"}, 10, false},
		{"", []string{"5", "6", "4"}, 6, true},
		{"", []string{"5", "x"}, 10, true},
		{"", []string{"x", "50"}, 50, true},
		{"", []string{"x", "y"}, 10, false},
		{`, "min_cost": 3, "max_cost": 30`, []string{"1"}, 3, true},
		{`, "min_cost": 3, "max_cost": 30`, []string{"0"}, 3, true},
		{`, "min_cost": 3, "max_cost": 30`, []string{"20"}, 20, true},
		{`, "min_cost": 3, "max_cost": 30`, []string{"31"}, 30, true},
		{`, "min_cost": 30`, []string{"x"}, 10, false},
	} {
		s := newSite(t, reporting("response:header:x-usage", c.bounds))
		s.answer(func(w http.ResponseWriter, _ *http.Request) {
			if s.left() != 90 {
				t.Errorf("%v left during the request, want 90", s.left())
			}
			w.Header()["X-Usage"] = c.values
			w.WriteHeader(http.StatusOK)
			w.Header()["X-Usage"] = []string{"99"} // too late
		})
		w := s.get()
		if got := 100 - s.left(); got != c.cost {
			t.Errorf("%.50q costs %v, want %v", c.values, got, c.cost)
		}
		if got := w.Result().Header["X-Usage"]; len(got) != len(c.values) {
			t.Errorf("the client got %q, want %q", got, c.values)
		}
		if c.known {
			s.settled(1, 0)
		} else {
			s.settled(0, 1)
		}
	}
}

// The ways in which a handler can end its response, with the cost of each in bytes and by a field
// that says 25. The estimate is 10.
func TestResponsesThatSettle(t *testing.T) {
	for name, c := range map[string]struct {
		handler        http.HandlerFunc
		method         string
		bytes, byField float64
	}{
		"writes": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 30))
			w.Write(make([]byte, 3))
		}, bytes: 33, byField: 25},
		"writes a string": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.(interface{ WriteString(string) (int, error) }).WriteString("12345678")
		}, bytes: 8, byField: 25},
		"never writes":   {handler: nothing, byField: 25},
		"only a status":  {handler: status(http.StatusTeapot), byField: 25},
		"no content":     {handler: status(http.StatusNoContent), byField: 25},
		"not modified":   {handler: status(http.StatusNotModified), byField: 25},
		"an error":       {handler: status(http.StatusBadGateway), byField: 25},
		"informational":  {handler: status(http.StatusEarlyHints), byField: 25},
		"HEAD with body": {handler: write(40), method: http.MethodHead, byField: 25},
		"aborts": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 40))
			panic(http.ErrAbortHandler)
		}, bytes: 40, byField: 25},
		"panics at once": {handler: func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, byField: 25},
	} {
		for source, want := range map[string]float64{
			"response:bytes": c.bytes, "response:header:x-usage": c.byField,
		} {
			s := newSite(t, reporting(source, ""))
			s.answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Usage", "25")
				c.handler(w, r)
			})
			func() {
				defer func() { _ = recover() }()
				s.send(httptest.NewRequest(c.method, "/", nil))
			}()
			if got := 100 - s.left(); got != want {
				t.Errorf("%s, %s: %v tokens, want %v", name, source, got, want)
			}
			s.settled(1, 0)
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func write(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, n)) }
}

// A rule that is charged with an estimate refuses by it, and a debt delays later requests.
func TestDebtOfAResponseDelaysTheNextRequests(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 100, "default_cost": 10,
		"cost_source": "response:header:x-usage"`), steady())
	usage := "130"
	s.answer(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Usage", usage) })
	if w := s.get(); w.Code != http.StatusOK || s.left() != -30 {
		t.Fatalf("status %d, %v left", w.Code, s.left())
	}
	if w := s.get(); w.Code != http.StatusTooManyRequests {
		t.Fatal(w.Code)
	} else {
		wants(t, w, "Retry-After: 40", "RateLimit-Remaining: 0")
	}
	s.now = s.now.Add(40 * time.Second)
	usage = "1000"
	if w := s.get(); w.Code != http.StatusOK || s.left() != -100 {
		t.Fatalf("status %d, %v left", w.Code, s.left())
	}
	if st := s.Stats()[0].Table; st.Settled != 1130 || st.Unpaid != 890 {
		t.Errorf("%+v", st)
	}
}

// Each rule with a cost in the response settles with its own cost, shadow rules and the parents of
// networks too. A rule with its cost in the request does not.
func TestEachRuleSettles(t *testing.T) {
	rule := func(name, source, more string) string {
		return sprintf(`{"name": %q, "limit_keys": ["ip:address/64,/48"], "algorithm_config":
			{"rps": 1, "burst": 100, "default_cost": 10, "cost_source": %q} %s}`, name, source, more)
	}
	s := newSite(t, jsonRules("", rule("field", "response:header:x-usage", ""),
		rule("other", "response:header:x-other", ""), rule("bytes", "response:bytes", ""),
		rule("trial", "response:bytes", `, "mode": "shadow"`), rule("fixed", "fixed", "")))
	s.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Usage", "30")
		w.Write(make([]byte, 5))
	})
	r := request()
	r.RemoteAddr = "[2001:db8::1]:1"
	s.send(r)
	want := map[string]float64{
		"field": 70, "field/48": 370, "other": 90, "other/48": 390, "bytes": 95, "bytes/48": 395,
		"trial": 95, "trial/48": 395, "fixed": 99, "fixed/48": 399,
	}
	for _, e := range s.Explain(r) {
		if e.Level.Tokens != want[e.Rule] {
			t.Errorf("%s: %v left, want %v", e.Rule, e.Level.Tokens, want[e.Rule])
		}
		if e.Estimate == strings.HasPrefix(e.Rule, "fixed") {
			t.Errorf("%+v", e)
		}
		delete(want, e.Rule)
	}
	if len(want) > 0 {
		t.Errorf("no %v", want)
	}
}

// A request that one rule refuses settles nothing.
func TestRefusedRequestsSettleNothing(t *testing.T) {
	s := newSite(t, jsonRules("", `{"name": "usage", "limit_keys": [], "algorithm_config": {"rps": 1,
		"burst": 100, "default_cost": 10, "cost_source": "response:bytes"}}`,
		jsonRule("key", `["header:k"]`, 1, "")))
	s.answer(write(50))
	s.granted(1, "K: 1")
	s.settled(1, 0)
	if s.left() != 50 {
		t.Errorf("%v left", s.left())
	}
}

// Decide leaves no caller that could settle, so the estimate stands.
func TestDecideKeepsTheEstimate(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""))
	w := httptest.NewRecorder()
	w.Header().Set("X-Usage", "25")
	if d, ok := s.Decide(w, request()); !ok || d.Cost != 10 || s.left() != 90 {
		t.Errorf("%+v, %v left", d, s.left())
	}
	s.settled(0, 1)
}

// Finish settles once, Cancel settles at 0, and a Settlement without a Writer keeps the estimates.
func TestSettlementIsOnce(t *testing.T) {
	s := newSite(t, reporting("response:header:x-usage", `, "min_cost": 1`))
	begin := func() (*httptest.ResponseRecorder, *Settlement) {
		w := httptest.NewRecorder()
		_, settlement, ok := s.Admit(w, request())
		if !ok || settlement == nil {
			t.Fatal("nothing to settle")
		}
		return w, settlement
	}
	w, settlement := begin()
	response := settlement.Writer(w)
	settlement.Cancel()
	settlement.Finish()
	settlement.Cancel()
	response.Header().Set("X-Usage", "50")
	response.Write([]byte("x")) // a handler that outlives its request
	if s.left() != 100 {
		t.Errorf("%v left after Cancel", s.left())
	}
	w, settlement = begin()
	settlement.Writer(w).Header().Set("X-Usage", "50")
	settlement.Finish()
	settlement.Cancel()
	settlement.Finish()
	if s.left() != 50 {
		t.Errorf("%v left after Finish", s.left())
	}
	_, settlement = begin()
	settlement.Finish()
	if s.left() != 40 {
		t.Errorf("%v left without a Writer", s.left())
	}
	s.settled(2, 1)
	var none *Settlement
	if none.Writer(w) != http.ResponseWriter(w) {
		t.Error("a nil Settlement has a writer of its own")
	}
	none.ReadHeader(w.Header())
	none.Cancel()
	none.Finish()
}

// A response may outlive its policy.
func TestReloadDuringAResponse(t *testing.T) {
	policy := reporting("response:bytes", "")
	s := newSite(t, policy)
	s.answer(func(w http.ResponseWriter, _ *http.Request) {
		if err := s.SetPolicy(mustParse(t, policy)); err != nil {
			t.Error(err)
		}
		w.Write(make([]byte, 60))
	})
	s.get()
	s.settled(1, 0)
	if s.left() != 40 {
		t.Errorf("%v left", s.left())
	}
	s.answer(func(w http.ResponseWriter, _ *http.Request) {
		if err := s.SetPolicy(mustParse(t, jsonRule("other", "[]", 5, ""))); err != nil {
			t.Error(err)
		}
		w.Write(make([]byte, 60))
	})
	s.get()
	s.settled(0, 0)
	if s.left() != 5 {
		t.Errorf("%v left", s.left())
	}
}

// A request that passes because a limiter failed is not charged, so it is not settled.
func TestFailureSettlesOnlyShadowRules(t *testing.T) {
	const config = `"algorithm_config": {"rps": 1, "burst": 100, "default_cost": 10,
		"cost_source": "response:bytes"}`
	s := newSite(t, jsonRules("", `{"name": "usage", "limit_keys": [], `+config+`}`,
		jsonRule("down", "[]", 5, ""),
		`{"name": "trial", "limit_keys": [], "mode": "shadow", `+config+`}`),
		WithLimiter(func(r Rule) (tb.Limiter, error) {
			if r.Name == "down" {
				return &otherLimiter{rule: r, asked: new([]string), fail: map[string]error{
					"down": http.ErrServerClosed,
				}}, nil
			}
			return nativeLimiter(r, time.Unix(1_800_000_000, 0))
		}))
	s.answer(write(50))
	if w := s.get(); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	var got []float64
	for _, e := range s.Explain(request()) {
		got = append(got, e.Level.Tokens)
	}
	if sprint(got) != "[100 0 50]" {
		t.Error(got)
	}
	s.settled(0, 0)
}
