package fiber

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/facetest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// start starts a server of an app, and returns its address.
func start(t *testing.T, f *fiber.App) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, f, listener)
	return listener.Addr().String()
}

func TestFace(t *testing.T) {
	face := facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		f := fiber.New(fiber.Config{ // for c.IP(), which the limiter does not read
			ProxyHeader: "X-Forwarded-For", TrustProxy: true,
			TrustProxyConfig: fiber.TrustProxyConfig{Loopback: true},
		})
		f.Use(RateLimit(l))
		f.All("/*", func(c fiber.Ctx) error { return c.SendString(facetest.Body) })
		return "http://" + start(t, f)
	})
	face.WithoutResponses = true
	facetest.Run(t, face)
}

// Each key that was in the same memory of Fiber has a bucket, and a hook may keep its text. A field
// that is announced as a trailer is a field all the same. A refusal has its body, but for HEAD.
func TestKeysInReusedMemory(t *testing.T) {
	var keys []string
	keep := func(_ *http.Request, e httplimit.Event) { keys = append(keys, e.Key[0].Value) }
	rule := httplimit.Rule{Keys: []string{"header:x-api-key"}, OnMissing: httplimit.Reject}
	f := limited(t, rule, httplimit.Selector{}, httplimit.WithHooks(httplimit.Hooks{Granted: keep}))
	conn, err := net.Dial("tcp", start(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	responses := bufio.NewReader(conn)
	for _, c := range []struct {
		method, fields string
		want, body     int
	}{
		{"GET", "", 200, 0}, {"HEAD", "", 429, 0}, {"GET", "Trailer: X-Api-Key\r\n", 429, 1},
	} {
		for i := range 100 {
			fmt.Fprintf(conn, "%s / HTTP/1.1\r\nHost: h\r\n%sX-Api-Key: %03d\r\n\r\n", c.method, c.fields, i)
			r := &http.Request{Method: c.method}
			w, err := http.ReadResponse(responses, r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(w.Body)
			if err != nil || w.StatusCode != c.want || min(len(body), 1) != c.body {
				t.Fatalf("%v, key %d: status %d, %s, %v", c, i, w.StatusCode, body, err)
			}
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 100 {
		t.Errorf("the hook has %q, want 100 keys", keys)
	}
}

// serve serves the app until the test ends.
func serve(t *testing.T, f *fiber.App, listener net.Listener) {
	done := make(chan error)
	go func() { done <- f.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := f.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// limited returns an app with a rule of one request an hour.
func limited(
	t *testing.T, rule httplimit.Rule, selector httplimit.Selector, opts ...httplimit.Option,
) *fiber.App {
	t.Helper()
	rule.Name, rule.Limit = "r", tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}
	l, err := httplimit.New(&httplimit.Policy{
		Sets: []httplimit.RuleSet{{Selector: selector, Rules: []httplimit.Rule{rule}}},
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	f := fiber.New()
	f.Use(RateLimit(l))
	f.All("/*", func(fiber.Ctx) error { return nil })
	return f
}

func status(t *testing.T, f *fiber.App, target string) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RequestURI = target // also if package url cannot parse it
	response, err := f.Test(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// The limiter sees the parts of a request as net/http would have them.
func TestRequest(t *testing.T) {
	var got http.Request
	rule := httplimit.Rule{Keys: []string{"host"}}
	host := httplimit.WithExtractor("host", func(r *http.Request) string { got = *r; return r.Host })
	f := limited(t, rule, httplimit.Selector{}, host)
	if s := status(t, f, "http://blue.example.com/a%2Fb/../c?q=1&q=2"); s != http.StatusOK {
		t.Fatal(s)
	}
	if got.Host != "blue.example.com" || got.URL.Path != "/a/b/../c" ||
		got.URL.RawPath != "/a%2Fb/../c" || got.URL.RawQuery != "q=1&q=2" ||
		got.Method != http.MethodGet || got.RemoteAddr != "0.0.0.0" {
		t.Errorf("%+v, %+v", got, got.URL)
	}
	if s := status(t, f, "/login%"); s != http.StatusBadRequest {
		t.Errorf("an invalid escape: status %d", s)
	}
}

// A client on a Unix socket cannot choose its address by the path of its own socket.
func TestPathOfAUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	listener, err := net.Listen("unix", "server")
	if err != nil {
		t.Skip(err)
	}
	serve(t, limited(t, httplimit.Rule{Keys: []string{"ip:address"}}, httplimit.Selector{}), listener)
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		client := http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			Dial: func(string, string) (net.Conn, error) {
				own := &net.UnixAddr{Name: fmt.Sprintf("192.0.2.%d:1", i)}
				return net.DialUnix("unix", own, &net.UnixAddr{Name: "server"})
			},
		}}
		response, err := client.Get("http://unix/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("client %d: status %d, want %d", i, response.StatusCode, want)
		}
	}
}
