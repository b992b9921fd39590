package httplimit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// decide calls Decide with a new ResponseRecorder.
func decide(l *Limiter, lines ...string) (*httptest.ResponseRecorder, Decision, bool) {
	w := httptest.NewRecorder()
	d, granted := l.Decide(w, request(lines...))
	return w, d, granted
}

// Decide returns the decision of the binding rule, granted or refused, and the client gets the
// same answer as from Middleware.
func TestDecide(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("wide", `["ip:address"]`, 9, ""),
		jsonRule("narrow", `["header:k"]`, 1, `"on_missing": "reject"`)))
	limit := tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}
	w, d, granted := decide(s.Limiter, "K: 1")
	if want := (Decision{tb.Decision{Allowed: true}, "narrow", limit, 1, 0}); !granted || d != want {
		t.Errorf("granted %v, %+v, want %+v", granted, d, want)
	}
	wants(t, w, "RateLimit-Limit: 1", "RateLimit-Remaining: 0", "RateLimit-Reset: 1")
	if w.Body.Len() > 0 {
		t.Errorf("a granted request is answered: %s", w.Body)
	}

	w, d, granted = decide(s.Limiter, "K: 1")
	want := Decision{tb.Decision{RetryAfter: time.Second}, "narrow", limit, 1, 0}
	if granted || d != want || w.Code != http.StatusTooManyRequests {
		t.Errorf("granted %v, status %d, %+v, want %+v", granted, w.Code, d, want)
	}
	wants(t, w, "RateLimit-Limit: 1", "RateLimit-Remaining: 0", "Retry-After: 1")

	w, d, granted = decide(s.Limiter)
	want = Decision{tb.Decision{RetryAfter: tb.Never}, "narrow", limit, 1, 0}
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
