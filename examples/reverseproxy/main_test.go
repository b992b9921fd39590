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
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if got := fmt.Sprint(w.Code, w.Header().Values("RateLimit-Limit")); got != "200 [10]" {
		t.Error(got)
	}
	if got := w.Header().Get("RateLimit-Remaining"); got != "9" {
		t.Errorf("RateLimit-Remaining: %s, want 9", got)
	}
	if got := w.Body.String(); got != "203.0.113.9, 127.0.0.1" {
		t.Errorf("the upstream got X-Forwarded-For: %s", got)
	}
}
