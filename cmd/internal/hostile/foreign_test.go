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

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/outbound"
	"github.com/seed-181794aa/ratelimit/tb"
)

// These tests have the transport of package outbound in front of limiters of other projects.

// foreignServers are programs whose configurations limit the requests of each value of the field
// Key, and listen on the socket in the folder. What a bucket grants at most, they grant.
var foreignServers = []struct {
	program string
	args    []string
	config  func(rate, capacity int) string
}{
	{"nginx", []string{"-p", ".", "-c", "config", "-e", "error.log"}, nginxConfig},
	{"caddy_ratelimit", []string{"run", "--adapter=caddyfile", "--config=config"}, caddyConfig},
}

func nginxConfig(rate, capacity int) string {
	return fmt.Sprintf(`
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
	add_header Retry-After 1 always;
	server {
		listen unix:socket;
		location / { empty_gif; limit_req zone=keys burst=%d nodelay; }
	}
}`, rate, capacity-1)
}

// caddyConfig is for mholt/caddy-ratelimit, whose window slides: in any second a bucket grants at
// most its capacity and its rate. A refusal has a Retry-After.
func caddyConfig(rate, capacity int) string {
	return fmt.Sprintf(`
{
	admin off
	persist_config off
}
http:// {
	bind unix/socket
	rate_limit {
		zone keys {
			key {header.Key}
			events %d
			window 1s
		}
	}
	respond ok
}`, capacity+rate)
}

// foreign is a running foreign server, and a transport to it.
type foreign struct {
	http.RoundTripper
	mu               sync.Mutex
	pauses           map[string]int    // that the transport has obeyed, by key
	granted, refused map[sentAfter]int // requests
}

// sentAfter are the requests of a key that were sent after a number of pauses.
type sentAfter struct {
	key    string
	pauses int
}

// withForeign runs a test with each foreign server that is there, which grants what a bucket does.
func withForeign(t *testing.T, rate, capacity int, test func(*testing.T, *foreign)) {
	t.Parallel()
	for _, s := range foreignServers {
		t.Run(s.program, func(t *testing.T) {
			t.Parallel()
			test(t, startForeign(t, find(t, s.program), s.args, s.config(rate, capacity)))
		})
	}
}

func startForeign(t *testing.T, path string, args []string, config string) *foreign {
	t.Helper()
	command := exec.Command(path, args...)
	command.Dir = filepath.Dir(testkit.File(t, "config", config))
	command.Env = append(os.Environ(), "XDG_DATA_HOME="+command.Dir)
	command.Stderr = newLog(t)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(command.Dir, "socket"))
	}
	await(t, path, func() bool {
		c, err := dial(t.Context(), "", "")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	base := &http.Transport{DialContext: dial}
	t.Cleanup(base.CloseIdleConnections)
	return &foreign{RoundTripper: base, pauses: make(map[string]int),
		granted: make(map[sentAfter]int), refused: make(map[sentAfter]int)}
}

func (f *foreign) RoundTrip(r *http.Request) (*http.Response, error) {
	key := keyOf(r)
	sent := sentAfter{key, f.pausesOf(key)}
	w, err := f.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.StatusCode == http.StatusTooManyRequests {
		f.refused[sent]++
		w.Header.Set("Pauses", fmt.Sprint(sent.pauses))
	} else {
		f.granted[sent]++
	}
	return w, nil
}

func (f *foreign) pausesOf(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pauses[key]
}

var foreignKeys = []string{"a", "b"}

// load sends requests for each of the keys, each from several goroutines. Each of them ends after a
// number of requests, or of pauses.
func (f *foreign) load(
	t *testing.T, goroutines, requests, pauses int, opts ...outbound.Option,
) outbound.RuleStats {
	t.Helper()
	transport := outbound.New(f, opts...)
	var all sync.WaitGroup
	for _, key := range foreignKeys {
		for range goroutines {
			all.Go(func() {
				for i := 0; i < requests && f.pausesOf(key) < pauses; i++ {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://foreign", nil)
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
						f.mu.Lock()
						f.pauses[key] = before + 1
						f.mu.Unlock()
					}
				}
			})
		}
	}
	all.Wait()
	return transport.Stats().Rules[0]
}

func keyOf(r *http.Request) string { return r.Header.Get("Key") }

// With the limit of the server, less what its rate supplies in a second, none is refused although
// the machine is busy. Twice as much is refused.
func TestForeignServerRefusesNone(t *testing.T) {
	const rate, capacity = 20, 40
	withForeign(t, rate, capacity, func(t *testing.T, f *foreign) {
		rule := outbound.Rule{Name: "foreign", Key: keyOf,
			Limit: tb.Limit{Capacity: capacity, Tokens: rate, Per: time.Second}}
		stats := f.load(t, 20, 3, 1, outbound.Rules(rule), outbound.Margin(time.Second))
		if len(f.refused) > 0 || stats.Waited == 0 {
			t.Errorf("%v refused, %+v", f.refused, stats)
		}
		rule.Limit.Capacity *= 2
		if stats := f.load(t, 2*capacity, 1, 1, outbound.Rules(rule)); stats.Refused == 0 {
			t.Errorf("none of twice as much refused: %+v", stats)
		}
	})
}

// A client that has no limit, and is told none, is refused once a pause, and waits until the server
// grants more. Only its first requests are under way together.
func TestForeignServerIsLearned(t *testing.T) {
	withForeign(t, 20, 10, func(t *testing.T, f *foreign) {
		const pauses = 4
		f.load(t, 4, 1000, pauses, outbound.Rules(outbound.Rule{Name: "learns", Key: keyOf}))
		for _, key := range foreignKeys {
			for n := 1; n < pauses; n++ {
				sent := sentAfter{key, n}
				if f.granted[sent] == 0 || f.refused[sent] != 1 {
					t.Errorf("%d granted, %d refused, %v", f.granted[sent], f.refused[sent], sent)
				}
			}
		}
	})
}
