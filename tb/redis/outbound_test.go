package redis

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/outbound"
	"github.com/seed-181794aa/ratelimit/tb"
)

// roundTrip is a server that a test calls.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newProcesses returns the transports of two processes that share the buckets in a Redis.
func newProcesses(
	t *testing.T, c rueidis.Client, server roundTrip, opts ...outbound.Option,
) (all []*outbound.Transport) {
	for range 2 {
		store, err := NewStore(c, WithPrefix("outbound:"), WithTimeout(patient))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outbound.New(server, append(opts, outbound.WithStore(store))...))
	}
	return all
}

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
	processes := newProcesses(t, c, server, outbound.PerHost(2, 0.01))
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

// The attempts of a key wait in the order in which they came, in whichever process. While some wait
// and a pause moves them, the attempts of other keys need not wait.
func TestOutboundWaits(t *testing.T) {
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
	processes := newProcesses(t, c, server, outbound.PerHost(1, 0.01),
		outbound.WithHooks(outbound.Hooks{
			Waits: func(_ *http.Request, _ string, d time.Duration) { waits <- d },
		}))
	send := func(ctx context.Context, process int, url string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		_, err = processes[process].RoundTrip(r)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var first, rest sync.WaitGroup
	first.Go(func() { _ = send(ctx, 0, "https://slow") })
	const others = 6
	for i := range others {
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
		var late *tb.WaitError
		err := send(soon, process, "https://slow")
		if stop(); !errors.As(err, &late) || late.Wait <= 3000*time.Second {
			t.Errorf("process %d, behind the pause: %v", process, err)
		}
	}
	cancel()
	rest.Wait()
	if n := processes[0].Stats(); n.Failures > 0 || n.Sent != 2 {
		t.Errorf("%+v", n)
	}
}
