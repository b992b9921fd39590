package httplimit

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

func TestUpstreamFieldsAreDropped(t *testing.T) {
	h := http.Header{"RateLimit-LIMIT": nil,
		"X-Rate-Limit": nil} // an upstream of HTTP/1 spells freely
	for _, f := range []string{
		"RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-",
		"X-RateLimit-Used", "Retry-After",
	} {
		h.Set(f, "77")
	}
	DropFields(h)
	want := []string{"Ratelimit", "Ratelimit-Policy", "Retry-After", "X-Rate-Limit"}
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) {
		t.Errorf("fields %q stay, want %q", got, want)
	}
}
