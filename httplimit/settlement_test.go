package httplimit

import (
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// reporting is a policy with a bucket of 100 tokens and an estimate of 10.
func reporting(source, more string) string {
	return oneRule("[]", `"rps": 1, "burst": 100, "default_cost": 10,
		"cost_source": "`+source+`"`+more)
}

func (s *site) settled(settled, estimated uint64) {
	s.t.Helper()
	if st := s.Stats()[0]; st.Settled != settled || st.Estimated != estimated {
		s.t.Errorf("%d settled and %d estimated, want %d and %d", st.Settled, st.Estimated, settled,
			estimated)
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
	for _, st := range s.Stats() {
		if settles := !strings.HasPrefix(st.Rule, "fixed"); (st.Settled+st.Estimated == 1) != settles {
			t.Errorf("%+v", st)
		}
	}
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
	response.WriteHeader(http.StatusEarlyHints) // a handler that outlives its request
	response.Write([]byte("x"))
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
	w, settlement = begin()
	w.Header().Set("X-Usage", "50")
	settlement.ReadHeader(w.Header())
	settlement.Cancel()
	if s.left() != 40 {
		t.Errorf("%v left after Cancel of a request whose header has a cost", s.left())
	}
	s.settled(3, 1)
	var none *Settlement
	if none.Writer(w) != http.ResponseWriter(w) {
		t.Error("a nil Settlement has a writer of its own")
	}
	none.ReadHeader(w.Header())
	none.ReadStatus("200")
	none.Abandon()
	none.Cancel()
	none.Finish()
}

// A response may outlive its policy.
func TestReloadDuringAResponse(t *testing.T) {
	policy := reporting("response:bytes", "")
	for _, c := range []struct {
		next    string
		settled uint64
		left    float64
	}{{policy, 1, 40}, {jsonRule("other", "[]", 5, ""), 0, 5}} {
		s := newSite(t, policy)
		s.answer(func(w http.ResponseWriter, _ *http.Request) {
			s.reload(c.next)
			w.Write(make([]byte, 60))
		})
		s.get()
		s.settled(c.settled, 0)
		if s.left() != c.left {
			t.Errorf("%v left, want %v", s.left(), c.left)
		}
	}
}

// A handler that panics before it has written anything leaves the status to what recovers.
func TestAPanicLeavesTheStatus(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Usage", "50")
		panic("a fault")
	})
	s := newSite(t, reporting("response:header:x-usage", ""))
	for host, inner := range map[string]http.Handler{
		"Middleware": s.Middleware(h),
		"Admit": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, settlement, _ := s.Admit(w, r)
			defer settlement.Finish()
			h.ServeHTTP(settlement.Writer(w), r)
		}),
	} {
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
			inner.ServeHTTP(w, r)
		})
		if w := s.get(); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: status %d, want 500", host, w.Code)
		}
	}
	s.settled(2, 0)
	if s.left() != 0 {
		t.Errorf("%v left", s.left())
	}
}

// Only a settlement that a body concerns watches it.
func TestRequestsThatAreNotWatched(t *testing.T) {
	body := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a"))
	for _, c := range []struct {
		s *Settlement
		r *http.Request
	}{
		{nil, body}, {&Settlement{}, body}, {&Settlement{byStatus: true}, &http.Request{}},
		{&Settlement{byStatus: true}, &http.Request{Body: http.NoBody}},
	} {
		if c.s.Request(c.r) != c.r {
			t.Errorf("%+v: the request %+v is copied", c.s, c.r)
		}
	}
}

// net/http removes the files of a form that it finds in its own request: the handler gets a copy.
func TestFilesOfForms(t *testing.T) {
	s, r := newSite(t, reporting("response:status", statusCosts)), request("POST")
	s.answer(func(_ http.ResponseWriter, r *http.Request) {
		r.MultipartForm, r.Pattern = &multipart.Form{}, "/"
		panic("recovered by outer middleware")
	})
	defer func() {
		if recover() == nil || r.MultipartForm == nil || r.Pattern == "" {
			t.Error("net/http does not find the form, or outer middleware the pattern")
		}
	}()
	s.send(r)
}

type bare struct{ http.ResponseWriter }

// wrapping is a ResponseWriter with optional methods for http.ResponseController only.
type wrapping struct{ bare }

type errorFlusher interface{ FlushError() error }

func (w wrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// notifier is a writer of net/http: gin calls its method without asking.
type notifier struct{ bare }

func (notifier) CloseNotify() <-chan bool { return make(chan bool) }

// Whatever methods a writer has, the writer of a Settlement has no others, except Flush and
// ReadFrom beside Hijack, and CloseNotify.
func TestOptionalMethodsOfWriters(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""))
	b := bare{httptest.NewRecorder()}
	for i, c := range []struct {
		w    http.ResponseWriter
		want string // flush, hijack, read and close
	}{
		{b, "false false false false"},
		{notifier{b}, "false false false true"},
		{wrapping{b}, "true false false false"},
		{struct {
			bare
			errorFlusher
		}{bare: b}, "true false false false"},
		{struct {
			bare
			http.Flusher
			io.ReaderFrom
		}{bare: b}, "true false false false"},
		{struct {
			bare
			http.Hijacker
		}{bare: b}, "true true true false"},
	} {
		_, settlement, _ := s.Admit(b, request())
		w := settlement.Writer(c.w)
		_, flush := w.(http.Flusher)
		_, hijack := w.(http.Hijacker)
		_, read := w.(io.ReaderFrom)
		closes := w.(interface{ CloseNotify() <-chan bool }).CloseNotify() != nil
		if got := sprint(flush, hijack, read, closes); got != c.want {
			t.Errorf("writer %d: %s, want %s", i, got, c.want)
		}
		settlement.Cancel()
	}
}

// A rule that has taken nothing settles nothing: if it is a shadow rule that would have refused the
// request, or the request passes because its store failed.
func TestCostOfNothing(t *testing.T) {
	shadow := jsonRules("", `{"name": "usage", "mode": "shadow", "limit_keys": [],
		"algorithm_config": {"rps": 1, "burst": 100, "default_cost": 10,
			"cost_source": "response:header:x-usage"}}`, `{"name": "bytes",
		"mode": "shadow", "limit_keys": [],
		"algorithm_config": {"rps": 1, "burst": 100, "cost_source": "response:bytes"}}`)
	down := WithStore(referenceStore{t: t, before: at("take all", fail)})
	for name, c := range map[string]struct {
		site    *site
		settled uint64
		left    float64
	}{
		"shadow": {newSite(t, shadow), 2, 0},
		"store":  {newSite(t, reporting("response:header:x-usage", ""), down), 0, 100},
	} {
		s := c.site
		s.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Usage", "50")
			io.WriteString(w, "body")
		})
		for range 4 {
			s.get()
		}
		s.settled(c.settled, 0)
		if all := s.Stats(); len(all) > 1 && all[1].Settled != 4 {
			t.Errorf("%s: %+v, want 4 settled by the rule behind it", name, all[1])
		}
		if s.left() != c.left {
			t.Errorf("%s: %v left, want %v", name, s.left(), c.left)
		}
	}
}
