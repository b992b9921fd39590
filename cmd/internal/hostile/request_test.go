package hostile

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// exchange sends a text to an address, with the line ends of HTTP, and returns the response.
func exchange(address, text string) (r *http.Response, body string, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(deadline))
	io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	if r, err = http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	return r, string(all), err
}

// raw is an exchange that must succeed.
func raw(t *testing.T, address, text string) (*http.Response, string) {
	t.Helper()
	r, body, err := exchange(address, text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return r, body
}

// echo answers with the target and the names of the fields that the upstream got.
func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, r.RequestURI, " ", slices.Sorted(maps.Keys(r.Header)))
}

// An upstream that turns names into variables cannot mistake one field for another. The limiter
// does not see the dropped fields either.
func TestNamesThatAnUpstreamMisreads(t *testing.T) {
	flags := []string{upstream(t, echo), policy(t, 2, `"header:x-api-key"`)}
	p := start(t, flags...)
	for _, name := range []string{"X_Api_Key", "X_Api-Key", "X-Api_Key", "X.Api.Key", "X~Api~Key",
		"X'Api'Key", "x_api_key"} {
		r, body := raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nConnection: close\n"+name+": k1\n\n")
		if r.StatusCode != http.StatusOK || strings.Contains(strings.ToLower(body), "api") {
			t.Errorf("%s: %s, %s", name, r.Status, body)
		}
	}
	p = start(t, append(flags, "--underscores-in-headers")...)
	for name, want := range map[string]bool{"X_Api_Key": true, "X.Api.Key": false} {
		_, body := raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nConnection: close\n"+name+": k1\n\n")
		if strings.Contains(strings.ToLower(body), "api") != want {
			t.Errorf("with --underscores-in-headers: %s: %s", name, body)
		}
	}
}

// The upstream gets the path that the selectors judged, or the request is refused.
func TestUpstreamGetsTheJudgedPath(t *testing.T) {
	one := testkit.File(t, "policy.json", `{"policies": [{"id": "v1", "spec": {
		"selector": {"pathPrefix": "/v1/"}, "rules": [{"name": "r", "limit_keys": [],
		"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}]}}]}`)
	p := start(t, upstream(t, echo)+"/app", "--policy="+one)
	for target, want := range map[string]string{
		"/v1/../x": "/app/x", "/v1/%2e%2e/x": "/app/x", "/v1/.%2E/x": "/app/x", "/v1/..%2fx": "",
		"/../x": "/app/x", "/../../x": "/app/x", "/%2e%2e/x": "/app/x", "/..%2fx": "",
		"/..%5cx": "", "/..;/x": "", "//x": "/app/x", "/./x": "/app/x", "/x/..": "/app/",
		"/a%2fb?c=1;2&b=5%": "/app/a%2fb?c=1;2&b=5%25", "/x%00": "", "http://h/v1/../x": "/app/x",
		"http://h": "/app/", "*": "", "x:http://h/v1/x": "", "x:v1/x": "",
		"/img/https%3A%2F%2Fh%2Fx": "/app/img/https%3A%2F%2Fh%2Fx", "/%2fx": "/app/%2fx",
	} {
		r, body := raw(t, p.proxy, "GET "+target+" HTTP/1.1\nHost: h\nConnection: close\n\n")
		got, _, _ := strings.Cut(body, " ")
		if want == "" && r.StatusCode != http.StatusBadRequest || want != "" && got != want {
			t.Errorf("%s: %s, %s, want %s", target, r.Status, body, want)
		}
	}
}

// TRACE, CONNECT and OPTIONS * reach no upstream.
func TestMethodsThatAreNotForwarded(t *testing.T) {
	p := start(t, upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the upstream got %s", r.Method)
	}))
	for line, want := range map[string]int{
		"TRACE /": http.StatusNotImplemented, "CONNECT h:80": http.StatusNotImplemented,
		"CONNECT /": http.StatusNotImplemented, "OPTIONS *": http.StatusBadRequest,
	} {
		r, _ := raw(t, p.proxy, line+" HTTP/1.1\nHost: h:80\nConnection: close\n\n")
		if r.StatusCode != want {
			t.Errorf("%s: %s", line, r.Status)
		}
	}
}

// A proxy that is its own upstream, directly or behind another proxy, answers 508 at once.
func TestLoop(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	between := start(t, "--upstream=http://"+address, "--policy=off")
	for name, next := range map[string]string{"itself": address, "another proxy": between.proxy} {
		p := start(t, "--listen="+address, "--upstream=http://"+next, "--policy=off",
			"--access-log=all")
		r, _ := raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nConnection: close\n\n")
		if r.StatusCode != http.StatusLoopDetected {
			t.Errorf("%s: %s", name, r.Status)
		}
		// A client cannot hide the loop.
		r, _ = raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nVia: 1.1 x\nConnection: close, Via\n\n")
		if r.StatusCode != http.StatusLoopDetected {
			t.Errorf("%s, with Via in Connection: %s", name, r.Status)
		}
		p.stop(t)
		if n := strings.Count(p.logged(t), "msg=request"); n != 4 {
			t.Errorf("%s: %d requests, want 4", name, n)
		}
	}
}

// Flags and policies that limit less than they seem to are named at the start.
func TestRisksAreLogged(t *testing.T) {
	log := func(flags ...string) string {
		p := start(t, flags...)
		p.stop(t)
		return p.logged(t)
	}
	for _, network := range []string{"0.0.0.0/0", "::/0", "0.0.0.0/1", "2000::/3", "::ffff:0.0.0.0/96",
		"10.0.0.0/8,0.0.0.0/0"} {
		if got := log("--trusted-proxies=" + network); !strings.Contains(got, "flag=--trusted-proxies") {
			t.Errorf("%s: %s", network, got)
		}
	}
	if got := log("--admin=0.0.0.0:0"); !strings.Contains(got, "flag=--admin value=0.0.0.0:0") {
		t.Error(got)
	}
	if got := log("--ipv6-prefix=128"); !strings.Contains(got, "flag=--ipv6-prefix value=128") {
		t.Error(got)
	}
	if got := log(policy(t, 1, `"ip:address", "header:x"`)); !strings.Contains(got, "limit_keys[1]") {
		t.Error(got)
	}
	dropped := policy(t, 1,
		`"header:x_key", "header:forwarded", "header:x-real-ip", "header:proxy-authorization"`)
	if got := log(dropped); strings.Count(got, "never has header:") != 4 {
		t.Error(got)
	}
	if got := log(dropped, "--underscores-in-headers", "--trusted-proxies=10.0.0.0/8",
		"--client-address-header=Forwarded"); strings.Count(got, "never has header:") != 1 {
		t.Error(got)
	}
	quiet := log("--trusted-proxies=10.0.0.0/8,fc00::/7,172.64.0.0/13,2400:cb00::/32,fe80::/10",
		policy(t, 1, `"ip:address"`), "--admin=[::1]:0")
	if strings.Contains(quiet, "level=WARN") {
		t.Error(quiet)
	}
}
