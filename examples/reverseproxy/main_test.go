package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit-Limit", "1")
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"))
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	get := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	w := get()
	if got := w.Header().Values("RateLimit-Limit"); w.Code != http.StatusOK || len(got) != 1 || got[0] != "10" {
		t.Errorf("status %d, RateLimit-Limit %q", w.Code, got)
	}
	if got := w.Body.String(); got != "203.0.113.9, 127.0.0.1" {
		t.Errorf("the upstream is told of %s", got)
	}
	for range 20 {
		w = get()
	}
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("status %d", w.Code)
	}
}
