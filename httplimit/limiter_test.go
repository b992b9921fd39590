package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPerAddress(t *testing.T) {
	served := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if d, ok := FromContext(r.Context()); ok {
			t.Errorf("without WithContext, the handler sees %+v", d)
		}
	})
	h := PerAddress(2, 0.001).Middleware(served)
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
