package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
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

func TestPerAddress(t *testing.T) {
	h := PerAddress(2, 0.001).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i, want := range []int{200, 200, 429} {
		for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, by(address))
			if w.Code != want {
				t.Errorf("request %d of %s: status %d, want %d", i, address, w.Code, want)
			}
		}
	}
	for name, call := range map[string]func(){
		"capacity": func() { PerAddress(0, 1) },
		"rate":     func() { PerAddress(1, 0) },
		"option":   func() { PerAddress(1, 1, WithExtractor("", nil)) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || err == nil {
					t.Errorf("%s: PerAddress has not panicked with an error", name)
				}
			}()
			call()
		}()
	}
}

func TestNilPolicyIsAnError(t *testing.T) {
	if l, err := New(nil); l != nil || err == nil {
		t.Errorf("%v, %v", l, err)
	}
	s := newSite(t, slowRule(1, 3))
	if err := s.SetPolicy(nil); err == nil || !strings.Contains(err.Error(), "the policy is nil") {
		t.Error(err)
	}
	s.granted(3, "K: 1") // as it was
}
