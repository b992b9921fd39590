package migrate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var served = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// get sends a request with fields as in "X-Api-Key: k". A field that starts with a slash is the
// path, and one that starts with "from " the address of the peer.
func get(h http.Handler, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if peer, ok := strings.CutPrefix(f, "from "); ok {
			r.RemoteAddr = peer
		} else if f[0] == '/' {
			r.URL.Path = f
		} else {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// granted sends n requests, and returns how many are granted.
func granted(t *testing.T, h http.Handler, n int, fields ...string) (count int) {
	t.Helper()
	for range n {
		switch status := get(h, fields...).Code; status {
		case http.StatusOK:
			count++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("status %d", status)
		}
	}
	return count
}

// wants requires that two limiters return what they should.
func wants[T comparable](t *testing.T, what string, before, wantBefore, after, wantAfter T) {
	t.Helper()
	if before != wantBefore || after != wantAfter {
		t.Errorf("%s: %v before and %v after, want %v and %v",
			what, before, after, wantBefore, wantAfter)
	}
}
