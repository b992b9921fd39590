package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// The clock of the bubble stands still, so no bucket is refilled.
func TestTenantsHaveTheirOwnBuckets(t *testing.T) { synctest.Test(t, ownBuckets) }

func ownBuckets(t *testing.T) {
	handler, err := newHandler()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"blue.example.com", "red.example.com:8080", "elsewhere.net:80"} {
		for range 5 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = host
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Fatalf("%s: status %d", host, w.Code)
			}
		}
	}
	// Other names of tenants that have used up their buckets.
	for _, host := range []string{"BLUE.example.com", "red.example.com.elsewhere.net"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != http.StatusTooManyRequests {
			t.Errorf("%s: status %d", host, w.Code)
		}
	}
}
