package fiber

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/proof/facetest"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestFace(t *testing.T) {
	face := facetest.HTTP(func(t *testing.T, l *httplimit.Limiter) string {
		f := fiber.New(fiber.Config{ // for c.IP(), which the limiter does not read
			ProxyHeader: "X-Forwarded-For", TrustProxy: true,
			TrustProxyConfig: fiber.TrustProxyConfig{Loopback: true},
		})
		f.Use(RateLimit(l))
		f.All("/*", func(c fiber.Ctx) error { return c.SendString(facetest.Body) })
		return "http://" + serve(t, f, "tcp", "127.0.0.1:0")
	})
	face.Without = facetest.Responses
	facetest.Run(t, face)
}

func exchange(t *testing.T, conn net.Conn, method, target, fields string) (int, string) {
	t.Helper()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n", method, target, fields)
	w, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(text)
}

// Each key that was in the same memory of Fiber has a bucket, and a hook may keep its text. A field
// that is announced as a trailer is a field all the same. A refusal has its body, but for HEAD.
func TestKeysInReusedMemory(t *testing.T) {
	var keys []string
	keep := func(_ *http.Request, e httplimit.Event) { keys = append(keys, e.Key[0].Value) }
	rule := httplimit.Rule{Keys: []string{"header:x-api-key"}, OnMissing: httplimit.Reject}
	conn := dial(t, limited(t, rule, httplimit.WithHooks(httplimit.Hooks{Granted: keep})))
	for _, c := range []struct {
		method, fields string
		want           int
		hasBody        bool
	}{
		{"GET", "", 200, false}, {"HEAD", "", 429, false}, {"GET", "Trailer: X-Api-Key\r\n", 429, true},
	} {
		for i := range 100 {
			fields := fmt.Sprintf("%sX-Api-Key: %03d\r\n", c.fields, i)
			status, body := exchange(t, conn, c.method, "/", fields)
			if status != c.want || (body != "") != c.hasBody {
				t.Fatalf("%v, key %d: status %d, %s", c, i, status, body)
			}
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 100 {
		t.Errorf("the hook has %q, want 100 keys", keys)
	}
}

func TestRequest(t *testing.T) {
	var got http.Request
	host := httplimit.WithExtractor("host", func(r *http.Request) string { got = *r; return r.Host })
	conn := dial(t, limited(t, httplimit.Rule{Keys: []string{"host"}}, host))
	status, _ := exchange(t, conn, "GET", "http://blue.example.com/a%2Fb/../c?q=1&q=2", "")
	if status != http.StatusOK || got.Host != "blue.example.com" || got.URL.Path != "/a/b/../c" ||
		got.URL.RawPath != "/a%2Fb/../c" || got.URL.RawQuery != "q=1&q=2" ||
		got.Method != http.MethodGet || got.RemoteAddr != "127.0.0.1" {
		t.Errorf("status %d, %+v, %+v", status, got, got.URL)
	}
	if status, _ := exchange(t, conn, "GET", "/login%", ""); status != http.StatusBadRequest {
		t.Errorf("an invalid escape: status %d", status)
	}
}

func TestPathOfAUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	serve(t, limited(t, httplimit.Rule{Keys: []string{"ip:address"}}), "unix", "server")
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		own := &net.UnixAddr{Name: fmt.Sprintf("192.0.2.%d:1", i)}
		conn, err := net.DialUnix("unix", own, &net.UnixAddr{Name: "server"})
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := exchange(t, conn, "GET", "/", "Connection: close\r\n"); status != want {
			t.Errorf("client %d: status %d, want %d", i, status, want)
		}
		conn.Close()
	}
}

func limited(t *testing.T, rule httplimit.Rule, opts ...httplimit.Option) *fiber.App {
	t.Helper()
	rule.Name, rule.Limit = "r", tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}
	l, err := httplimit.New(httplimit.Rules(rule), opts...)
	if err != nil {
		t.Fatal(err)
	}
	f := fiber.New()
	f.Use(RateLimit(l))
	f.All("/*", func(fiber.Ctx) error { return nil })
	return f
}

func dial(t *testing.T, f *fiber.App) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", serve(t, f, "tcp", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func serve(t *testing.T, f *fiber.App, network, address string) string {
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- f.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := errors.Join(f.Shutdown(), <-done); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
