package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

func TestInstancesShareABucket(t *testing.T) {
	address := redistest.Start(t).Addr
	var instances []http.Handler
	for range 2 {
		option, err := redis.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		client, err := redis.NewClient(option)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		handler, err := newHandler(client, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, handler)
	}
	start := time.Now()
	granted := 0
	for i := range 20 {
		w := httptest.NewRecorder()
		instances[i%2].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code == http.StatusOK {
			granted++
		}
	}
	// A slow machine may see some tokens of the rate, too: one in two seconds.
	most := 5 + int(time.Since(start)/(2*time.Second)) + 1
	if granted < 5 || granted > most {
		t.Errorf("%d requests were granted, want 5 to %d", granted, most)
	}
}
