package httplimit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// adaptiveRule is a rule with this rate and these fields of adaptive.
func adaptiveRule(rate float64, burst int, adaptive string) string {
	return oneRule("[]", sprintf(`"tokens_per_second": %v, "burst": %d, "adaptive": {%s}`,
		rate, burst, adaptive))
}

const adaptiveRange = `"min": 10, "max": 1000, "target_p99": "200ms"`

// overload answers requests with the status for some intervals of the controller.
func (s *site) overload(status int, header ...string) {
	h := s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}))
	for range 400 {
		s.now = s.now.Add(10 * time.Millisecond)
		h.ServeHTTP(httptest.NewRecorder(), request())
	}
}

func (s *site) perSecond() float64 {
	l := s.Stats()[0].Limit
	return float64(l.Tokens) / l.Per.Seconds()
}

// A failing downstream lowers the rate. The decisions, the fields and the statistics have the new
// rate, and so has the limiter.
func TestAdaptiveRateFollowsFailures(t *testing.T) {
	for status, falls := range map[int]bool{
		200: false, 404: false, 500: false, 429: true, 502: true, 503: true, 504: true,
	} {
		s := newSite(t, adaptiveRule(100, 100, adaptiveRange), WithFields(Fields{Policy: true}))
		wants(t, s.get(), `RateLimit-Policy: "r";q=100;w=1`)
		s.overload(status)
		if rate := s.perSecond(); rate < 100 != falls {
			t.Errorf("status %d: %v tokens a second", status, rate)
		}
		if falls {
			w := s.get()
			if policy := w.Header().Get("RateLimit-Policy"); policy == `"r";q=100;w=1` {
				t.Errorf("status %d: %s", status, policy)
			}
			if e := s.Explain(request()); e[0].Limit != s.Stats()[0].Limit || e[0].Adaptive.Max != 1000 {
				t.Errorf("%+v", e)
			}
			if got := s.policy.Load().rules[0].table.Limit(); got != s.Stats()[0].Limit {
				t.Errorf("the limiter has %v", got)
			}
		}
	}
}

// The rate does not grow while the downstream asks to wait. A date is ignored.
func TestRetryAfterOfTheDownstream(t *testing.T) {
	for value, grows := range map[string]bool{
		"0": true, "1": true, "60": false, "4000000000": false, "-60": true,
		"Fri, 15 Jan 2027 08:01:00 GMT": true,
	} {
		s := newSite(t, adaptiveRule(100, 1, adaptiveRange))
		s.overload(http.StatusServiceUnavailable, "Retry-After", value)
		before := s.perSecond()
		for range 2000 {
			s.now = s.now.Add(10 * time.Millisecond)
			s.get()
			s.get() // refused, so that the limit holds requests back
		}
		if rate := s.perSecond(); rate > before != grows {
			t.Errorf("Retry-After %q: %v a second, was %v, grows: want %v", value, rate, before, grows)
		}
	}
}

// A client lowers no rate, whatever the handler answers: neither if it disconnects, nor with a body
// or an upgrade for which a proxy answers 502. Decide sees no responses.
func TestAdaptiveRateIgnoresClientsAndDecide(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	upgrade := func(to string) func(r *http.Request) *http.Request {
		return func(r *http.Request) *http.Request { r.Header.Set("Upgrade", to); return r }
	}
	for name, c := range map[string]struct {
		change func(r *http.Request) *http.Request
		falls  bool
	}{
		"a client that leaves": {func(r *http.Request) *http.Request {
			return r.WithContext(gone)
		}, false},
		"a malformed body": {func(r *http.Request) *http.Request {
			r.Body = io.NopCloser(iotest.ErrReader(errors.New("malformed chunk")))
			return r
		}, false},
		"an upgrade": {upgrade("a ~"), true}, "no ASCII": {upgrade("\u00fc"), false},
		"a control character": {upgrade("a\x1f"), false},
	} {
		s := newSite(t, adaptiveRule(100, 100, adaptiveRange))
		s.answer(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusBadGateway) // as a ReverseProxy
		})
		for range 400 {
			s.now = s.now.Add(10 * time.Millisecond)
			s.send(c.change(request()))
		}
		if rate := s.perSecond(); rate < 100 != c.falls {
			t.Errorf("%s: %v a second", name, rate)
		}
	}
	s := newSite(t, adaptiveRule(100, 1, adaptiveRange))
	for range 1000 {
		s.now = s.now.Add(10 * time.Millisecond)
		s.Decide(httptest.NewRecorder(), request())
		s.Decide(httptest.NewRecorder(), request()) // refused, so that the limit holds requests back
	}
	if rate := s.perSecond(); rate != 100 {
		t.Errorf("%v a second after Decide, want 100", rate)
	}
}

// A server that is not of net/http names the status, also by a code of gRPC.
func TestAdaptiveRateFollowsNamedStatuses(t *testing.T) {
	for status, falls := range map[string]bool{
		"503": true, "404": false, "UNAVAILABLE": true, "DEADLINE_EXCEEDED": true, "INTERNAL": false,
	} {
		s := newSite(t, adaptiveRule(100, 100, adaptiveRange))
		for range 400 {
			s.now = s.now.Add(10 * time.Millisecond)
			_, settlement, _ := s.Take(nil, request())
			settlement.ReadStatus(status)
			settlement.Finish()
		}
		if rate := s.perSecond(); rate < 100 != falls {
			t.Errorf("%s: %v a second", status, rate)
		}
	}
}

func TestShadowRuleKeepsItsRate(t *testing.T) {
	s := newSite(t, strings.Replace(adaptiveRule(100, 100, adaptiveRange), "{",
		`{"mode": "shadow", `, 1))
	s.overload(http.StatusServiceUnavailable)
	if rate := s.perSecond(); rate != 100 {
		t.Error(rate)
	}
}

// A reload with the same range keeps the rate, and another one starts again. A response to a
// request from before the reload does not bring the rate of before back.
func TestReloadOfAnAdaptiveRule(t *testing.T) {
	s := newSite(t, adaptiveRule(100, 100, adaptiveRange))
	before := s.policy.Load().rules[0].control
	s.overload(http.StatusServiceUnavailable)
	rate := s.perSecond()
	s.reload(adaptiveRule(100, 100, adaptiveRange))
	if got := s.perSecond(); got != rate || rate >= 100 {
		t.Errorf("%v after a reload, %v before", got, rate)
	}
	s.overload(http.StatusServiceUnavailable)
	if got := s.perSecond(); got > rate {
		t.Errorf("%v, was %v", got, rate)
	}
	s.reload(adaptiveRule(80, 90, `"min": 20, "max": 500, "target_p99": "200ms"`))
	if got := s.perSecond(); got != 80 {
		t.Errorf("%v, want 80", got)
	}
	if err := before.SetLimit(tb.Limit{Capacity: 100, Tokens: 1, Per: 1}); err == nil {
		t.Error("a control of before sets the limit")
	}
	table := s.policy.Load().rules[0].table
	if got := table.Limit(); got.Capacity != 90 || got.Tokens != 80 {
		t.Errorf("the limiter has %v", got)
	}
	s.overload(http.StatusServiceUnavailable)
	if got := s.perSecond(); got >= 80 || got < 20 {
		t.Errorf("%v, want less than 80", got)
	}
	s.reload(oneRule("[]", `"rps": 50, "burst": 60`))
	if got := table.Limit(); got.Tokens != 50 || s.perSecond() != 50 {
		t.Errorf("the limiter has %v", got)
	}
}

// A rejected reload lets the control go on.
func TestRejectedReloadKeepsTheAdaptiveRate(t *testing.T) {
	s := newSite(t, adaptiveRule(100, 100, adaptiveRange), WithStore(referenceStore{t: t}))
	s.overload(http.StatusServiceUnavailable)
	rate := s.perSecond()
	if err := s.SetPolicy(mustParse(t, adaptiveRule(100, unlucky, adaptiveRange))); err == nil {
		t.Fatal("the capacity is accepted")
	}
	if got := s.perSecond(); got != rate || rate >= 100 {
		t.Errorf("%v, was %v", got, rate)
	}
	s.policy.Load().rules[0].control.mu.Lock()
	defer s.policy.Load().rules[0].control.mu.Unlock()
	if !s.policy.Load().rules[0].control.running {
		t.Error("the control has stopped")
	}
}

// Each granted request ends for the controller, also if its response does not pass through Writer,
// and a connection that is taken over ends at that moment.
func TestAdaptiveRequestsEnd(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("fixed", "[]", 100, ""),
		adaptiveRule(100, 100, adaptiveRange)))
	inFlight := func() int { return s.policy.Load().rules[1].control.Controller.Stats().InFlight }
	begin := func() *Settlement {
		_, settlement, ok := s.Admit(httptest.NewRecorder(), request())
		if !ok || inFlight() != 1 {
			t.Fatalf("granted %v, %d in flight", ok, inFlight())
		}
		return settlement
	}
	ended := func(by string) {
		if n := inFlight(); n != 0 {
			t.Fatalf("%s: %d in flight", by, n)
		}
	}
	begin().Finish()
	ended("Finish")
	begin().Cancel()
	ended("Cancel")
	begin().Abandon()
	ended("Abandon")
	settlement := begin()
	settlement.ReadHeader(http.Header{})
	ended("ReadHeader")
	settlement.Finish()
	ended("Finish after ReadHeader")
	settlement = begin()
	w := settlement.Writer(hijackable{httptest.NewRecorder()})
	if _, _, err := w.(http.Hijacker).Hijack(); err != nil {
		t.Fatal(err)
	}
	ended("Hijack")
	settlement.Finish()
	ended("Finish after Hijack")
}

type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// A reload that keeps the rate of a rule changes all else that clients see of the rule.
func TestReloadOfARuleThatKeepsItsRate(t *testing.T) {
	set := func(id, more string, burst int) string {
		return sprintf(`{"id": %q, "spec": {"rules": [%s, %s]}}`, id, oneRule("[]",
			`"rps": 100, "burst": 100, "adaptive": {`+adaptiveRange+`}`+more),
			jsonRule("fixed", `["header:fixed"]`, burst, ""))
	}
	s := newSite(t, `{"policies": [`+set("a", "", 1000)+`]}`)
	s.overload(http.StatusServiceUnavailable)
	rate := s.perSecond()
	s.now = s.now.Add(time.Hour) // all tokens come back
	const cost = `, "cost_source": "header:w", "default_cost": 7`
	s.reload(`{"policies": [` + set("a", cost, 50) + "," + set("b", "", 50) + `]}`)
	if got := s.perSecond(); got != rate || rate >= 100 {
		t.Errorf("%v after a reload, %v before", got, rate)
	}
	w := s.get()
	if got := items(t, w, "RateLimit"); len(got) != 2 || !strings.HasPrefix(got[0], "a/r r=93 ") ||
		!strings.HasPrefix(got[1], "b/r r=99 ") {
		t.Errorf("%q", got)
	}
	if s.seen.Rule != "a/r" || s.seen.Cost != 7 {
		t.Errorf("%+v", s.seen)
	}
	if got := s.Explain(request("Fixed: 1"))[1]; got.Rule != "a/fixed" || got.Remaining != 49 {
		t.Errorf("%+v, want 49 of 50 tokens left", got)
	}
}

// Failures of requests that no proxy can send on lower no adaptive rate.
func TestRequestsThatNoProxyCanForward(t *testing.T) {
	for _, c := range []struct {
		method, host, query string
		want                bool
	}{
		{"", "", "", true},
		{"PATCH", "z.test:80", "a=b&%20", true},
		{"!#$%&'*+-.^_`|~azAZ09", "[::1]:80", "", true},
		{"GET", "h_1,2.test.", "", true},
		{"GET /x", "h", "", false},
		{"G\tT", "h", "", false},
		{"G\u00c9T", "h", "", false},
		{"G\x80T", "h", "", false},
		{"GET\x00", "h", "", false},
		{"GET", "h/v1", "", false},
		{"GET", `h\v1`, "", false},
		{"GET", "u@h", "", false},
		{"GET", "h\u00fc", "", false},
		{"GET", "h#", "", false},
		{"GET", "[fe80::1%25x]", "", false},
		{"GET", "h", "a b", false},
		{"GET", "h", " ", false},
	} {
		r := request()
		r.Method, r.Host, r.URL.RawQuery = c.method, c.host, c.query
		if got := CanForward(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		s := newSite(t, adaptiveRule(100, 100, adaptiveRange))
		h := s.Middleware(status(http.StatusBadGateway))
		for range 100 {
			s.now = s.now.Add(50 * time.Millisecond)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if falls := s.perSecond() < 100; falls != c.want {
			t.Errorf("%+v: %v tokens a second", c, s.perSecond())
		}
	}
}
