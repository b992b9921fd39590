package hostile

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/outbound"
	"github.com/seed-181794aa/ratelimit/tb"
)

// These tests have the transport of package outbound in front of the limit_req of nginx.

// nginx is an nginx that limits the requests of each value of the field Key, and a transport to it.
type nginx struct {
	http.RoundTripper
	mu      sync.Mutex
	pauses  map[string]int     // that the transport has obeyed, by key
	refused map[refusalsOf]int // requests that were refused
}

// refusalsOf are the refusals of requests of a key that were sent after a number of pauses.
type refusalsOf struct {
	key    string
	pauses int
}

// startNginx starts nginx with these directives in its location.
func startNginx(t *testing.T, rate int, location string) *nginx {
	t.Helper()
	path := find(t, "nginx")
	dir := t.TempDir()
	socket, conf := filepath.Join(dir, "socket"), filepath.Join(dir, "nginx.conf")
	err := os.WriteFile(conf, fmt.Appendf(nil, `
daemon off;
master_process off;
pid nginx.pid;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
	uwsgi_temp_path temp; scgi_temp_path temp;
	limit_req_zone $http_key zone=keys:1m rate=%dr/s;
	limit_req_status 429;
	server {
		listen unix:%s;
		location / { empty_gif; %s }
	}
}`, rate, socket, location), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-p", dir, "-c", conf, "-e", filepath.Join(dir, "error.log"))
	command.Stderr = newLog(t)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	await(t, "nginx", func() bool {
		c, err := dial(t.Context(), "", "")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	base := &http.Transport{DialContext: dial}
	t.Cleanup(base.CloseIdleConnections)
	return &nginx{
		RoundTripper: base, pauses: make(map[string]int), refused: make(map[refusalsOf]int),
	}
}

func (n *nginx) RoundTrip(r *http.Request) (*http.Response, error) {
	key := keyOf(r)
	before := refusalsOf{key, n.pausesOf(key)}
	w, err := n.RoundTripper.RoundTrip(r)
	if err == nil && w.StatusCode == http.StatusTooManyRequests {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.refused[before]++
		w.Header.Set("Pauses", fmt.Sprint(before.pauses))
	}
	return w, err
}

func (n *nginx) pausesOf(key string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pauses[key]
}

// load sends requests for each of two keys, each from several goroutines. Each of them ends after a
// number of requests, or of pauses.
func (n *nginx) load(
	t *testing.T, goroutines, requests, pauses int, opts ...outbound.Option,
) outbound.RuleStats {
	t.Helper()
	transport := outbound.New(n, opts...)
	var all sync.WaitGroup
	for _, key := range []string{"a", "b"} {
		for range goroutines {
			all.Go(func() {
				for i := 0; i < requests && n.pausesOf(key) < pauses; i++ {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://nginx", nil)
					if err != nil {
						t.Error(err)
						return
					}
					r.Header.Set("Key", key)
					w, err := transport.RoundTrip(r)
					if err != nil {
						t.Error(err)
						return
					}
					_ = w.Body.Close()
					if before, err := strconv.Atoi(w.Header.Get("Pauses")); err == nil {
						n.mu.Lock()
						n.pauses[key] = before + 1
						n.mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	return transport.Stats().Rules[0]
}

func keyOf(r *http.Request) string { return r.Header.Get("Key") }

// With the limit of nginx, less what its rate supplies in a second, none is refused although the
// machine is busy. Twice as much is refused.
func TestNginxRefusesNone(t *testing.T) {
	t.Parallel()
	const rate, capacity = 20, 40
	n := startNginx(t, rate, fmt.Sprintf("limit_req zone=keys burst=%d nodelay;", capacity-1))
	rule := outbound.Rule{Name: "nginx", Key: keyOf,
		Limit: tb.Limit{Capacity: capacity, Tokens: rate, Per: time.Second}}
	stats := n.load(t, 20, 3, 1, outbound.Rules(rule), outbound.Margin(time.Second))
	if len(n.refused) > 0 || stats.Waited == 0 {
		t.Errorf("%v refused, %+v", n.refused, stats)
	}
	rule.Limit.Capacity *= 2
	if stats := n.load(t, 2*capacity, 1, 1, outbound.Rules(rule)); stats.Refused == 0 {
		t.Errorf("none of twice as much refused: %+v", stats)
	}
}

// A client that has no limit, and is told none, is refused once a pause. Only its first requests
// are under way together.
func TestNginxIsLearned(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 20, "limit_req zone=keys burst=9 nodelay; add_header Retry-After 1 always;")
	const pauses = 4
	n.load(t, 4, 1000, pauses, outbound.Rules(outbound.Rule{Name: "learns", Key: keyOf}))
	for of, requests := range n.refused {
		if of.pauses > 0 && of.pauses < pauses && requests > 1 {
			t.Errorf("%d requests of %s refused after %d pauses", requests, of.key, of.pauses)
		}
	}
}
