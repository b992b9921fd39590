//go:build !race

// The race detector makes sync.Pool drop what it is given.

package outbound

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/seed-181794aa/ratelimit/rate"
)

func BenchmarkRoundTrip(b *testing.B) {
	base := &still{response: respond(nil, forms[0].answer)}
	for name, transport := range map[string]http.RoundTripper{
		"base": base, "outbound": New(base, PerHost(1<<20, 1e8)),
		"by hand": &byHand{base: base, all: make(map[string]*rate.Limiter)},
	} {
		b.Run(name, func(b *testing.B) {
			r := request(context.Background(), "")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transport.RoundTrip(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// byHand is the wrapper that programs write: a map of limiters by host. It obeys no server.
type byHand struct {
	base http.RoundTripper
	mu   sync.Mutex
	all  map[string]*rate.Limiter
}

func (t *byHand) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	l := t.all[r.URL.Host]
	if l == nil {
		l = rate.NewLimiter(1e9, 1<<29)
		t.all[r.URL.Host] = l
	}
	t.mu.Unlock()
	if err := l.Wait(r.Context()); err != nil {
		return nil, err
	}
	return t.base.RoundTrip(r)
}

func TestRoundTripAllocates(t *testing.T) {
	base := &still{response: respond(nil, forms[0].answer)}
	client := New(base, PerHost(1<<20, 1e8))
	r := request(t.Context(), "a")
	if n := testing.AllocsPerRun(1000, func() { _, _ = client.RoundTrip(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
