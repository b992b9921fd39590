package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
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

// pipes is a listener whose connections are in memory, for bubbles.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.accept <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memory is a proxy between clients and an upstream in one bubble.
type memory struct {
	*Proxy
	*daemon.Server
	*http.Client
	t       *testing.T
	start   time.Time
	pending sync.WaitGroup

	mu   sync.Mutex
	seen []string // the time of each event in ms, and what happened
}

// inMemory starts a proxy whose clients use HTTP/1 or HTTP/2.
func inMemory(t *testing.T, major int, change ...func(*Config)) *memory {
	t.Helper()
	m := &memory{t: t, start: time.Now()}
	policy, err := cli.ParsePolicy([]byte(delaying))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Upstream: &url.URL{Scheme: "http", Host: "upstream"}, Policy: policy, Access: AccessOff,
		Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	if m.Proxy, err = New(c); err != nil {
		t.Fatal(err)
	}
	back := newPipes()
	upstream := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m.note("upstream " + r.URL.Path)
	})}
	go upstream.Serve(back)
	m.upstream.Transport.(*http.Transport).DialContext = back.dial

	front := newPipes()
	m.Server = daemon.NewServer(front, m.Proxy, m.errors)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(major == 1)
	protocols.SetUnencryptedHTTP2(major == 2)
	m.Protocols = protocols
	m.Start(make(chan error, 1))
	m.Client = &http.Client{Transport: &http.Transport{DialContext: front.dial, Protocols: protocols}}
	t.Cleanup(func() {
		m.CloseIdleConnections()
		m.Close()
		m.upstream.Transport.(*http.Transport).CloseIdleConnections()
		upstream.Close()
	})
	return m
}

func (m *memory) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, time.Since(m.start).String()+" "+what)
}

// send sends a request, and returns when it is answered or waits.
func (m *memory) send(ctx context.Context, path string) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://proxy"+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	m.pending.Go(func() {
		resp, err := m.Do(r)
		switch {
		case errors.Is(err, context.Canceled):
			return
		case err != nil:
			m.note(err.Error())
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			m.note(resp.Status + " " + path)
		}
	})
	synctest.Wait()
}

// saw waits for all requests, and wants these events. Their order does not matter, because each has
// its time.
func (m *memory) saw(want ...string) {
	m.t.Helper()
	m.pending.Wait()
	slices.Sort(m.seen)
	slices.Sort(want)
	if !slices.Equal(m.seen, want) {
		m.t.Errorf("got %q, want %q", m.seen, want)
	}
}

// metrics wants these lines among the metrics.
func (m *memory) metrics(want ...string) {
	m.t.Helper()
	got := scrape(m.t, m.Proxy)
	for _, line := range want {
		if !strings.Contains(got, line+"\n") {
			m.t.Errorf("no %s in\n%s", line, got)
		}
	}
}

// bothVersions runs a test in a bubble, over HTTP/1 and over HTTP/2.
func bothVersions(t *testing.T, test func(t *testing.T, major int)) {
	t.Helper()
	for major, name := range map[int]string{1: "HTTP/1", 2: "HTTP/2"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, major) })
		})
	}
}

func TestUpstreamGetsRequestsAtTheirSlots(t *testing.T) {
	bothVersions(t, func(t *testing.T, major int) {
		log := testkit.NewTranscript()
		m := inMemory(t, major, func(c *Config) { c.Log, c.Access = log.Logger(), AccessAll })
		for _, path := range []string{"/1", "/2", "/3", "/4", "/5"} {
			m.send(t.Context(), path)
		}
		m.metrics(`tb_waiting_requests{rule="r",set=""} 2`)
		m.saw("0s upstream /1", "0s upstream /2", "0s 429 Too Many Requests /5",
			"500ms upstream /3", "1s upstream /4")
		m.metrics(`tb_waiting_requests{rule="r",set=""} 0`,
			`tb_delayed_requests_total{rule="r",set=""} 2`, `tb_delay_seconds_total{rule="r",set=""} 1.5`,
			`tb_requests_total{outcome="granted",rule="r",set=""} 4`,
			`tb_requests_total{outcome="refused",rule="r",set=""} 1`,
			// The decisions took no time in the bubble, so the delays are not in them.
			"tb_decision_duration_seconds_sum 0", "tb_decision_duration_seconds_count 5")
		for _, want := range [][2]string{{"/3", "refused=false delay=500ms"}, {"/4", "delay=1s"}} {
			if line := log.Until(t, "path="+want[0]); !strings.HasSuffix(line, want[1]) {
				t.Errorf("%s, want %s", line, want[1])
			}
		}
	})
}

func TestHangUpWhileWaiting(t *testing.T) {
	bothVersions(t, func(t *testing.T, major int) {
		log := testkit.NewTranscript()
		m := inMemory(t, major, func(c *Config) { c.Log, c.Access = log.Logger(), AccessAll })
		m.send(t.Context(), "/1")
		m.send(t.Context(), "/2")
		ctx, cancel := context.WithCancel(t.Context())
		m.send(ctx, "/gone")
		time.Sleep(100 * time.Millisecond)
		cancel()
		synctest.Wait()
		m.metrics(`tb_hung_up_requests_total{rule="r",set=""} 1`,
			`tb_waiting_requests{rule="r",set=""} 0`)
		if line := log.Until(t, "path=/gone"); !strings.HasSuffix(line, "status=499 bytes=0") {
			t.Error(line)
		}
		m.send(t.Context(), "/3")
		m.saw("0s upstream /1", "0s upstream /2", "500ms upstream /3")
	})
}

// A stop serves the requests whose time comes in the first half of the timeout, refuses the others
// at once, and cuts off none.
func TestStopWhileRequestsWait(t *testing.T) {
	bothVersions(t, func(t *testing.T, major int) {
		m := inMemory(t, major)
		for _, path := range []string{"/1", "/2", "/3", "/4"} {
			m.send(t.Context(), path)
		}
		time.Sleep(100 * time.Millisecond)
		m.Limiter.StopWaiting(time.Now().Add(500 * time.Millisecond))
		if err := m.Stop(0, time.Second); err != nil {
			t.Error(err)
		}
		m.saw("0s upstream /1", "0s upstream /2", "100ms 429 Too Many Requests /4",
			"500ms upstream /3")
	})
}

// unreadBody is a body that must not be read before a time.
type unreadBody struct {
	io.Reader
	t    *testing.T
	from time.Time
}

func (b *unreadBody) Read(p []byte) (int, error) {
	if time.Now().Before(b.from) {
		b.t.Error("the body is read while the request waits")
	}
	return b.Reader.Read(p)
}

func TestBodyIsNotReadWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := inMemory(t, 1)
		m.send(t.Context(), "/1")
		m.send(t.Context(), "/2")
		body := &unreadBody{strings.NewReader("text"), t, m.start.Add(500 * time.Millisecond)}
		m.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/3", body))
		m.saw("0s upstream /1", "0s upstream /2", "500ms upstream /3")
	})
}
