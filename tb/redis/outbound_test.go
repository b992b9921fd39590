package redis

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/outbound"
	"github.com/seed-181794aa/ratelimit/tb"
)

// roundTrip is a server that a test calls.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A pause that one process is told holds the key in all processes, and no other key. So does a
// bucket that one process has emptied.
func TestOutboundProcesses(t *testing.T) {
	c := dial(t, redistest.Start(t))
	sent := 0
	server := roundTrip(func(*http.Request) (*http.Response, error) {
		w := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
		if sent++; sent == 1 {
			w.StatusCode, w.Header = 429, http.Header{"Retry-After": {"600"}}
		}
		return w, nil
	})
	var processes []*outbound.Transport
	for range 2 {
		store, err := NewStore(c, WithPrefix("outbound:"), WithTimeout(patient))
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes,
			outbound.New(server, outbound.PerHost(2, 0.01), outbound.WithStore(store)))
	}
	send := func(process int, url string) (wait time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = processes[process].RoundTrip(r)
		var late *tb.WaitError
		if errors.As(err, &late) {
			return late.Wait
		}
		if err != nil {
			t.Error(err)
		}
		return 0
	}
	send(0, "https://a")
	for process := range processes {
		if d := send(process, "https://a"); d <= 500*time.Second || d > 600*time.Second {
			t.Errorf("process %d waits %v, want 600 s, less what has passed", process, d)
		}
	}
	for process := range processes {
		if d := send(process, "https://b"); d > 0 {
			t.Errorf("process %d waits %v for another key", process, d)
		}
	}
	if d := send(1, "https://b"); d <= 0 || d > 100*time.Second {
		t.Errorf("an empty bucket lets wait %v, want 100 s, less what has passed", d)
	}
	if n := processes[0].Stats(); n.Failures > 0 || n.Rules[0].Refused != 1 || sent != 3 {
		t.Errorf("%+v, %d sent", n, sent)
	}
}
