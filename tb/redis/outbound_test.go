package redis

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/outbound"
	"github.com/seed-181794aa/ratelimit/tb"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The attempts of a key wait in the order in which they came, in whichever process. A pause that
// one process is told holds the key in both, and what it moves delays no other key.
func TestOutboundProcesses(t *testing.T) {
	c := dial(t, redistest.Start(t))
	refuse, waits := make(chan struct{}), make(chan time.Duration)
	server := roundTrip(func(r *http.Request) (*http.Response, error) {
		w := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
		if r.URL.Host == "slow" {
			<-refuse
			w.StatusCode, w.Header = 429, http.Header{"Retry-After": {"3000"}}
		}
		return w, nil
	})
	hooks := outbound.Hooks{Waits: func(_ *http.Request, _ string, d time.Duration) { waits <- d }}
	var processes [2]*outbound.Transport
	for i := range processes {
		store, err := NewStore(c, WithPrefix("outbound:"), WithTimeout(patient))
		if err != nil {
			t.Fatal(err)
		}
		processes[i] = outbound.New(server, outbound.PerHost(1, 0.01), outbound.WithStore(store),
			outbound.WithHooks(hooks))
	}
	send := func(ctx context.Context, process int, url string) error {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		_, err := processes[process].RoundTrip(r)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var first, rest sync.WaitGroup
	first.Go(func() { _ = send(ctx, 0, "https://slow") })
	for i := range 6 {
		for processes[0].Stats().Sent == 0 {
			runtime.Gosched()
		}
		rest.Go(func() {
			if err := send(ctx, i%2, "https://slow"); !errors.Is(err, context.Canceled) {
				t.Errorf("attempt %d: %v", i, err)
			}
		})
		slot := time.Duration(i+1) * 100 * time.Second
		if d := <-waits; d <= slot-50*time.Second || d > slot {
			t.Errorf("attempt %d waits %v, want %v, less what has passed", i, d, slot)
		}
	}
	close(refuse)
	first.Wait() // what waits in its process has moved
	for process, url := range []string{"https://b", "https://c"} {
		if err := send(ctx, process, url); err != nil {
			t.Error(err)
		}
		soon, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		var late *tb.WaitError
		err := send(soon, process, "https://slow")
		if !errors.As(err, &late) || late.Wait <= 3000*time.Second || late.Wait > time.Hour {
			t.Errorf("process %d, behind the pause: %v", process, err)
		}
	}
	cancel()
	rest.Wait()
	if n := processes[0].Stats(); n.Failures > 0 || n.Sent != 2 || n.Rules[0].Refused != 1 {
		t.Errorf("%+v", n)
	}
}
