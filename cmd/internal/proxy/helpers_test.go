package proxy

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// two is a policy that grants each address two requests, and then one in ten seconds.
const two = `{"rules": [{"name": "two", "limit_keys": ["ip:address"],
	"algorithm_config": {"tokens_per_second": 0.1, "burst": 2}}]}`

// start serves a proxy in front of upstream and returns the proxy, its URL and its clock.
func start(t *testing.T, policy string, upstream http.HandlerFunc, change ...func(*Config)) (
	*Proxy, string, *testkit.Clock) {
	t.Helper()
	back := httptest.NewServer(upstream)
	t.Cleanup(back.Close)
	target, _ := url.Parse(back.URL)
	now := testkit.NewClock()
	c := Config{
		Upstream: target, PreserveHost: true, Access: AccessOff,
		Log: slog.New(slog.DiscardHandler), LostLines: func() uint64 { return 0 },
		Options: []httplimit.Option{httplimit.WithLimiterOptions(tb.WithClock(now.Now))},
	}
	if policy != "" {
		var err error
		if c.Policy, err = cli.ParsePolicy([]byte(policy)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range change {
		f(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p.upstream.Transport.(fewRetries).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	front := httptest.NewUnstartedServer(p)
	front.Config.Protocols = new(http.Protocols)
	front.Config.Protocols.SetHTTP1(true)
	front.Config.Protocols.SetUnencryptedHTTP2(true)
	front.Start()
	t.Cleanup(front.Close)
	return p, front.URL, now
}

// over is a change of the Config of start: the upstream is a server with TLS.
func over(t *testing.T, s *httptest.Server) func(*Config) {
	s.StartTLS()
	t.Cleanup(s.Close)
	return to(s.URL)
}

func to(address string) func(*Config) {
	return func(c *Config) { c.Upstream, _ = url.Parse(address) }
}

// get sends a request and returns the response and its body. header has names and values.
func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	return testkit.Do(t, r)
}

type running struct {
	*testkit.Running
	proxy, admin string
}

func parse(t *testing.T, args ...string) *Command {
	t.Helper()
	c := &Command{}
	parser, err := kong.New(c, Vars)
	if err == nil {
		_, err = parser.Parse(args)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t *testing.T, change func(*Command)) *running {
	t.Helper()
	c := parse(t)
	c.Listen, c.Admin, c.Shutdown = "127.0.0.1:0", "127.0.0.1:0", time.Minute
	c.Delay = 0
	change(c)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	r := &running{Running: testkit.Run(t, c.Run)}
	for _, word := range strings.Fields(r.Banner) {
		word = strings.TrimRight(word, ".,")
		switch {
		case !strings.HasPrefix(word, "http://"):
		case r.proxy == "":
			r.proxy = strings.TrimSuffix(word, "/")
		case strings.HasSuffix(word, "/metrics"):
			r.admin = strings.TrimSuffix(word, "/metrics")
		}
	}
	return r
}

func listen(t *testing.T) *connections {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &connections{Listener: l}
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.json")
	write(t, name, content)
	return name
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func scrape(t *testing.T, p *Proxy) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.Metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
