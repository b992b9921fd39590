package fiber

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/seed-181794aa/ratelimit/examples/adapters/internal/adaptertest"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func start(t *testing.T, l *httplimit.Limiter, app adaptertest.App) string {
	f := fiber.New()
	f.Use(recover.New(), RateLimit(l))
	f.All("/", func(c fiber.Ctx) error {
		app.Serve()
		return c.SendString("hello")
	})
	f.All("/panic", func(fiber.Ctx) error { panic("handler") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, f, listener)
	return listener.Addr().String()
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

func TestRateLimit(t *testing.T) { adaptertest.Run(t, start) }

func TestEstimates(t *testing.T) { adaptertest.RunEstimates(t, start) }

func newLimiter(t *testing.T, rule httplimit.Rule, selector httplimit.Selector) *httplimit.Limiter {
	t.Helper()
	rule.Name, rule.Limit = "r", tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}
	l, err := httplimit.New(&httplimit.Policy{
		Sets: []httplimit.RuleSet{{Selector: selector, Rules: []httplimit.Rule{rule}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
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

// A route has other spellings, which a selector does not pick. A RateLimit of the route has all.
func TestRouteHasSpellings(t *testing.T) {
	handler := func(fiber.Ctx) error { return nil }
	bySelector, byRoute := fiber.New(), fiber.New()
	login := httplimit.Selector{PathExact: "/login"}
	bySelector.Use(RateLimit(newLimiter(t, httplimit.Rule{}, login)))
	bySelector.Get("/login", handler)
	byRoute.Get("/login", RateLimit(newLimiter(t, httplimit.Rule{}, httplimit.Selector{})), handler)
	for _, target := range []string{"/login", "/LOGIN", "/login/", "/login//"} {
		want := http.StatusTooManyRequests
		if target == "/login" {
			want = http.StatusOK
		}
		if got := status(t, bySelector, target); got != http.StatusOK {
			t.Errorf("selector: %s: status %d", target, got)
		}
		if got := status(t, byRoute, target); got != want {
			t.Errorf("route: %s: status %d, want %d", target, got, want)
		}
	}
	if got := status(t, bySelector, "/login"); got != http.StatusTooManyRequests {
		t.Errorf("selector: status %d", got)
	}
}

// The limiter sees the parts of a request as net/http would have them.
func TestRequest(t *testing.T) {
	var got http.Request
	l, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name: "r", Keys: []string{"all"}, Limit: tb.Limit{Capacity: 9, Tokens: 1, Per: time.Hour},
	}), httplimit.WithExtractor("all", func(r *http.Request) string {
		got = *r
		return r.Host
	}))
	if err != nil {
		t.Fatal(err)
	}
	f := fiber.New()
	f.Use(RateLimit(l))
	f.Get("/*", func(fiber.Ctx) error { return nil })
	if s := status(t, f, "http://blue.example.com/a%2Fb/../c?q=1&q=2"); s != http.StatusOK {
		t.Fatal(s)
	}
	if got.Host != "blue.example.com" || got.URL.Path != "/a/b/../c" ||
		got.URL.RawPath != "/a%2Fb/../c" || got.URL.RawQuery != "q=1&q=2" ||
		got.Method != http.MethodGet || got.RemoteAddr != "0.0.0.0" {
		t.Errorf("%+v, %+v", got, got.URL)
	}
}

// A selector picks a route in all its escapes, whether Fiber's routes are unescaped or not.
func TestEscapedPath(t *testing.T) {
	for _, unescape := range []bool{false, true} {
		f := fiber.New(fiber.Config{UnescapePath: unescape})
		f.Use(RateLimit(newLimiter(t, httplimit.Rule{}, httplimit.Selector{PathExact: "/login"})))
		f.Get("/login", func(fiber.Ctx) error { return nil })
		for _, request := range []struct {
			target string
			want   int
		}{
			{"/login", http.StatusOK}, {"/login", http.StatusTooManyRequests},
			{"/log%69n", http.StatusTooManyRequests}, {"/%6cogin?q", http.StatusTooManyRequests},
			{"//login", http.StatusTooManyRequests}, {"/login%", http.StatusBadRequest},
		} {
			if got := status(t, f, request.target); got != request.want {
				t.Errorf("unescape %v: %s: status %d, want %d", unescape, request.target, got, request.want)
			}
		}
	}
}

// A client on a Unix socket cannot choose its address by the path of its own socket.
func TestPathOfAUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	listener, err := net.Listen("unix", "server")
	if err != nil {
		t.Skip(err)
	}
	f := fiber.New()
	f.Use(RateLimit(newLimiter(t, httplimit.Rule{Keys: []string{"ip:address"}}, httplimit.Selector{})))
	f.Get("/", func(fiber.Ctx) error { return nil })
	serve(t, f, listener)
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
