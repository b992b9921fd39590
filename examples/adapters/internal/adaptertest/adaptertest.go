// Package adaptertest tests adapters of web frameworks with requests to a real server.
package adaptertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// App is what the routes of a server do. The limiter limits all of them. A server of Run has the
// routes / and /panic for every method, and recovers from panics.
type App struct {
	// Serve is called by the handler of / before it answers "hello".
	Serve func()
	// Release lets the handler of /stream go on after its first flush.
	Release chan struct{}
}

// Start starts the server of an application, and returns its address, a host and a port.
type Start func(t *testing.T, l *httplimit.Limiter, app App) (address string)

const burst = 20

var limit = tb.Limit{Capacity: burst, Tokens: 1, Per: time.Hour}

func perAddress() httplimit.Rule {
	return httplimit.Rule{Name: "per-address", Keys: []string{"ip:address"}, Limit: limit}
}

// site is a server whose clock stands still until it is moved.
type site struct {
	*httplimit.Limiter
	t       *testing.T
	address string
	served  atomic.Int64
	passed  atomic.Int64 // nanoseconds of its clock
	release chan struct{}
}

func newSite(t *testing.T, start Start, rule httplimit.Rule, opts ...httplimit.Option) *site {
	s := &site{t: t, release: make(chan struct{})}
	epoch := time.Unix(1_800_000_000, 0)
	clock := tb.WithClock(func() time.Time { return epoch.Add(time.Duration(s.passed.Load())) })
	l, err := httplimit.New(httplimit.Rules(rule),
		append(opts, httplimit.WithLimiterOptions(clock))...)
	if err != nil {
		t.Fatal(err)
	}
	s.Limiter = l
	s.address = start(t, l, App{Serve: func() { s.served.Add(1) }, Release: s.release})
	return s
}

// send sends a request, and returns the response with its body. Fields are lines as in "A: b".
func (s *site) send(method, path string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(body)
}

func (s *site) get(path string, fields ...string) int {
	s.t.Helper()
	response, _ := s.send(http.MethodGet, path, fields...)
	return response.StatusCode
}

// wantStatus requires that a request is answered with the status.
func (s *site) wantStatus(want int, path string, fields ...string) {
	s.t.Helper()
	if got := s.get(path, fields...); got != want {
		s.t.Errorf("GET %s %v: status %d, want %d", path, fields, got, want)
	}
}

// exhaust takes the whole burst.
func (s *site) exhaust(fields ...string) {
	s.t.Helper()
	for range burst {
		s.wantStatus(http.StatusOK, "/", fields...)
	}
}

// Run tests an adapter.
func Run(t *testing.T, start Start) {
	for name, test := range map[string]func(*testing.T, Start){
		"exactly the burst": exactlyTheBurst, "fields of grants": fieldsOfGrants,
		"refusals": refusals, "spoofed addresses": spoofedAddresses,
		"trusted proxies": trustedProxies, "missing and repeated keys": missingAndRepeatedKeys,
		"keys in reused memory": keysInReusedMemory, "panics": panics,
	} {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

// exactlyTheBurst sends more requests at once than the bucket has tokens.
func exactlyTheBurst(t *testing.T, start Start) {
	s := newSite(t, start, perAddress())
	var statuses [600]atomic.Int64
	var all sync.WaitGroup
	for range 3 * burst {
		all.Go(func() { statuses[s.get("/")].Add(1) })
	}
	all.Wait()
	granted, refused := statuses[http.StatusOK].Load(), statuses[http.StatusTooManyRequests].Load()
	if granted != burst || refused != 2*burst || s.served.Load() != burst {
		t.Errorf("%d granted, %d refused, %d served; want %d, %d, %d",
			granted, refused, s.served.Load(), burst, 2*burst, burst)
	}
}

func fieldsOfGrants(t *testing.T, start Start) {
	s := newSite(t, start, perAddress())
	response, body := s.send(http.MethodPost, "/")
	if response.StatusCode != http.StatusOK || body != "hello" {
		t.Errorf("%d %q", response.StatusCode, body)
	}
	wantFields(t, response, "Ratelimit-Limit: 20", "Ratelimit-Remaining: 19",
		`Ratelimit: "per-address";r=19;t=68400`, "Retry-After: ")
}

func refusals(t *testing.T, start Start) {
	s := newSite(t, start, perAddress(), httplimit.WithSharedSecret("2"))
	s.exhaust()
	response, body := s.send(http.MethodGet, "/")
	if response.StatusCode != http.StatusTooManyRequests {
		t.Error(response.Status)
	}
	wait := response.Header.Get("Retry-After")
	var seconds int
	if _, err := fmt.Sscan(wait, &seconds); err != nil || seconds < 3600 || seconds > 5400 {
		t.Errorf("Retry-After: %q, want 3600 and up to half of it more", wait)
	}
	wantFields(t, response, "Content-Type: application/problem+json", "Cache-Control: no-store",
		"Ratelimit-Limit: 20", "Ratelimit-Remaining: 0", "Ratelimit-Reset: "+wait,
		`Ratelimit: "per-address";r=0;t=`+wait)
	var problem struct {
		Status   int
		Title    string
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != 429 ||
		problem.Title == "" || len(problem.Violated) != 1 || problem.Violated[0] != "per-address" {
		t.Errorf("%v in %s", err, body)
	}
	response, body = s.send(http.MethodHead, "/")
	if response.StatusCode != http.StatusTooManyRequests || body != "" {
		t.Errorf("HEAD: %d %q", response.StatusCode, body)
	}
	wantFields(t, response, "Retry-After: "+wait, "Content-Type: application/problem+json")
	if n := s.served.Load(); n != burst {
		t.Errorf("%d requests were served, want %d", n, burst)
	}
}

// wantFields checks fields of a header. "Retry-After: " wants the field to be absent.
func wantFields(t *testing.T, r *http.Response, lines ...string) {
	t.Helper()
	for _, line := range lines {
		name, want, _ := strings.Cut(line, ": ")
		if got := strings.Join(r.Header.Values(name), " | "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// spoofedAddresses sends fields that frameworks may take for the address of the client.
func spoofedAddresses(t *testing.T, start Start) {
	s := newSite(t, start, perAddress())
	s.exhaust()
	for _, name := range []string{
		"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip",
	} {
		s.wantStatus(http.StatusTooManyRequests, "/", name+": 203.0.113.195")
	}
	s.wantStatus(http.StatusTooManyRequests, "/", "Forwarded: for=203.0.113.195")
}

func trustedProxies(t *testing.T, start Start) {
	s := newSite(t, start, perAddress(), httplimit.WithClientAddress(httplimit.ClientAddress{
		Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}))
	s.exhaust("X-Forwarded-For: 203.0.113.195")
	s.wantStatus(http.StatusTooManyRequests, "/", "X-Forwarded-For: 198.51.100.7, 203.0.113.195")
	s.wantStatus(http.StatusTooManyRequests, "/",
		"X-Forwarded-For: 198.51.100.7", "X-Forwarded-For: 203.0.113.195")
	s.wantStatus(http.StatusOK, "/", "X-Forwarded-For: 203.0.113.196")
}

func perKey() httplimit.Rule {
	return httplimit.Rule{
		Name: "per-key", Keys: []string{"header:x-api-key"}, OnMissing: httplimit.Reject,
		Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	}
}

func missingAndRepeatedKeys(t *testing.T, start Start) {
	s := newSite(t, start, perKey())
	s.wantStatus(http.StatusBadRequest, "/")
	s.wantStatus(http.StatusBadRequest, "/", "X-Api-Key: a", "X-Api-Key: b")
	s.wantStatus(http.StatusOK, "/", "X-Api-Key: a")
	s.wantStatus(http.StatusTooManyRequests, "/", "X-Api-Key: a")
	// A field that is announced as a trailer is a field all the same.
	if line := s.raw("GET / HTTP/1.1\r\nHost: h\r\nTrailer: X-Api-Key\r\nX-Api-Key: a\r\n" +
		"Connection: close\r\n\r\n"); !strings.HasPrefix(line, "HTTP/1.1 4") {
		t.Errorf("with a trailer: %s", line)
	}
	if n := s.served.Load(); n != 1 {
		t.Errorf("%d requests were served, want 1", n)
	}
}

// raw sends bytes on a connection of its own, and returns the status line of the response.
func (s *site) raw(request string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return line
}

// keysInReusedMemory sends keys of one length on one connection. Each key has a bucket, and a hook
// may keep its text.
func keysInReusedMemory(t *testing.T, start Start) {
	var keys []string
	keep := func(_ *http.Request, e httplimit.Event) { keys = append(keys, e.Key[0].Value) }
	s := newSite(t, start, perKey(), httplimit.WithHooks(httplimit.Hooks{Granted: keep}))
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		for i := range 100 {
			s.wantStatus(want, "/", fmt.Sprintf("X-Api-Key: key-%03d", i))
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 100 || s.Stats()[0].Table.Keys != 100 {
		t.Errorf("%d buckets, and the hook has %q, want 100", s.Stats()[0].Table.Keys, keys)
	}
}

// panics requires that a request whose handler panics has taken its token.
func panics(t *testing.T, start Start) {
	s := newSite(t, start, perAddress())
	for range burst {
		s.wantStatus(http.StatusInternalServerError, "/panic")
	}
	s.wantStatus(http.StatusTooManyRequests, "/panic")
	if granted := s.Stats()[0].Granted; granted != burst {
		t.Errorf("%d granted, want %d", granted, burst)
	}
}
