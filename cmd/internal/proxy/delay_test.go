package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// delaying is a policy that grants two requests at once, and then one in half a second.
const delaying = `{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1s",
	"algorithm_config": {"tokens_per_second": 2, "burst": 2}}`

// roundTrip is an upstream in memory, for bubbles.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func inMemory(t *testing.T, policy string, upstream roundTrip) (*Proxy, *testkit.Transcript) {
	t.Helper()
	parsed, err := cli.ParsePolicy([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	log := testkit.NewTranscript()
	p, err := New(Config{
		Upstream: &url.URL{Scheme: "http", Host: "upstream"}, Policy: parsed, Access: AccessAll,
		Log: log.Logger(), LostLines: func() uint64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.upstream.Transport = upstream
	return p, log
}

// The upstream gets a delayed request at its slot. A client that hangs up while it waits gives its
// slot back. A stop serves the requests whose time comes in the first half of the timeout, and
// refuses the others. The body of a request is not read while it waits.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var seen []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(time.Since(start), " ", what))
		}
		p, log := inMemory(t, delaying, func(r *http.Request) (*http.Response, error) {
			note("upstream " + r.URL.Path)
			answer := httptest.NewRecorder().Result()
			answer.Request = r
			return answer, nil
		})
		var pending sync.WaitGroup
		send := func(ctx context.Context, path string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, unread{t})
			pending.Go(func() {
				w := httptest.NewRecorder()
				if p.ServeHTTP(w, r); w.Code != http.StatusOK {
					note(fmt.Sprint(w.Code, " ", path))
				}
			})
			synctest.Wait()
		}
		gone, hangUp := context.WithCancel(t.Context())
		send(t.Context(), "/1")
		send(t.Context(), "/2")
		send(gone, "/gone") // until 500 ms
		time.Sleep(100 * time.Millisecond)
		hangUp()
		synctest.Wait()
		for _, path := range []string{"/3", "/4", "/5"} {
			send(t.Context(), path)
		}
		metrics := scrape(t, p)
		for _, want := range []string{
			`tb_waiting_requests{rule="r",set=""} 2`, `tb_hung_up_requests_total{rule="r",set=""} 1`,
		} {
			if !strings.Contains(metrics, want+"\n") {
				t.Errorf("no %s in\n%s", want, metrics)
			}
		}
		l := listen(t)
		server := &frontServer{daemon.NewServer(l.Listener, p, log.Logger()), p, l}
		if err := server.Stop(0, time.Second); err != nil { // waits until 600 ms
			t.Error(err)
		}
		pending.Wait()
		slices.Sort(seen)
		want := []string{"0s upstream /1", "0s upstream /2", "100ms 429 /4", "100ms 429 /5",
			"100ms 499 /gone", "500ms upstream /3"}
		if !slices.Equal(seen, want) {
			t.Errorf("got %q, want %q", seen, want)
		}
		log.Until(t, "path=/gone status=499")
		if line := log.Until(t, "path=/3"); !strings.HasSuffix(line, "refused=false delay=400ms") {
			t.Error(line)
		}
	})
}

// unread is a body that must not be read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body is read")
	return 0, errors.New("read")
}

// Without a connection to the upstream, an adaptive rate falls.
func TestAdaptiveRateFallsWithoutUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := inMemory(t, adaptive, func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("no connection")}
		})
		for range 400 {
			time.Sleep(10 * time.Millisecond)
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}
		if rate := rateOf(p); rate >= 100 {
			t.Errorf("the rate is %v", rate)
		}
	})
}
