package httplimit

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// decide asks l without Middleware.
func decide(l *Limiter, lines ...string) (*httptest.ResponseRecorder, Decision, bool) {
	w := httptest.NewRecorder()
	d, granted := l.Decide(w, request(lines...))
	return w, d, granted
}

// Who decides without Middleware gets the decision of the binding rule, whatever it is, and
// what the client is told is the same.
func TestDecide(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("wide", `["ip:address"]`, 9, ""),
		jsonRule("narrow", `["header:k"]`, 1, `"on_missing": "reject"`)))
	limit := tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}
	w, d, granted := decide(s.Limiter, "K: 1")
	if want := (Decision{tb.Decision{Allowed: true}, "narrow", limit, 1}); !granted || d != want {
		t.Errorf("granted %v, %+v, want %+v", granted, d, want)
	}
	wants(t, w, "RateLimit-Limit: 1", "RateLimit-Remaining: 0", "RateLimit-Reset: 1")
	if w.Body.Len() > 0 {
		t.Errorf("a granted request is answered: %s", w.Body)
	}

	w, d, granted = decide(s.Limiter, "K: 1")
	want := Decision{tb.Decision{RetryAfter: time.Second}, "narrow", limit, 1}
	if granted || d != want || w.Code != http.StatusTooManyRequests {
		t.Errorf("granted %v, status %d, %+v, want %+v", granted, w.Code, d, want)
	}
	wants(t, w, "RateLimit-Limit: 1", "RateLimit-Remaining: 0", "Retry-After: 1")

	w, d, granted = decide(s.Limiter)
	want = Decision{tb.Decision{RetryAfter: tb.Never}, "narrow", limit, 1}
	if granted || d != want || w.Code != http.StatusBadRequest {
		t.Errorf("granted %v, status %d, %+v, want %+v", granted, w.Code, d, want)
	}
}

// There is no decision if no rule applies, or a limiter fails.
func TestDecideWithoutDecision(t *testing.T) {
	open, _, _ := broken(t)
	closed, _, _ := broken(t, WithFailClosed())
	for _, tt := range []struct {
		name    string
		l       *Limiter
		lines   []string
		granted bool
		status  int
	}{
		{"no rule", open.Limiter, nil, true, http.StatusOK},
		{"open", open.Limiter, []string{"K: 1"}, true, http.StatusOK},
		{"closed", closed.Limiter, []string{"K: 1"}, false, http.StatusServiceUnavailable},
	} {
		w, d, granted := decide(tt.l, tt.lines...)
		if granted != tt.granted || w.Code != tt.status || d != (Decision{}) {
			t.Errorf("%s: granted %v, status %d, %+v", tt.name, granted, w.Code, d)
		}
	}
}

// Hooks and Explain have the parts of a key, with the values as they are in the request.
func TestKeyParts(t *testing.T) {
	var events []Event
	hook := func(_ *http.Request, e Event) { events = append(events, e) }
	s := newSite(t, jsonRules("", jsonRule("who", `["ip:address", "header:k"]`, 1, "")),
		WithHooks(Hooks{Granted: hook, Refused: hook}))
	s.granted(1, "K: a b")
	want := []KeyPart{{"ip:address", "192.0.2.1"}, {"header:k", "a b"}}
	if got := s.Explain(request("K: a b"))[0].Key; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(events) != 2 {
		t.Fatalf("%d events, want 2", len(events))
	}
	for _, e := range events {
		if e.Rule != "who" || !slices.Equal(e.Key, want) {
			t.Errorf("%+v, want key %q", e, want)
		}
	}
	if got := FormatKey(want); got != `ip:address=192.0.2.1 header:k="a b"` {
		t.Error(got)
	}
	if got := FormatKey(nil); got != "everybody" {
		t.Error(got)
	}
	if st := s.Stats()[0]; st.Granted != 1 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
}
