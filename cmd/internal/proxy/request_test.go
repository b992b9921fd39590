package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// A field that a client lists in Connection is not passed on, so it must not choose a bucket.
func TestConnectionChoosesNoBucket(t *testing.T) {
	const policy = `{"evaluation": "first_match", "rules": [
		{"name": "key", "limit_keys": ["header:x-api-key"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": 9}},
		{"name": "address", "limit_keys": ["ip:address"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": 1}}]}`
	p, url, _ := start(t, policy, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Values("X-Api-Key"))
	})
	for i, want := range []int{200, 429} {
		r, body := get(t, url, "X-Api-Key", fmt.Sprint(i), "Connection", "x, x-api-KEY ,y")
		if r.StatusCode != want || want == 200 && body != "[]" {
			t.Errorf("%d: %s, %s", i, r.Status, body)
		}
	}
	if r, body := get(t, url, "X-Api-Key", "k"); r.StatusCode != http.StatusOK || body != "[k]" {
		t.Errorf("%s, %s", r.Status, body)
	}
	h := http.Header{"Connection": {"content-length"}, "Content-Length": {"5"}, // is passed on
		"Proxy-Authorization": {"x"}, "Keep-Alive": {"x"}, "Upgrade": {"websocket"}}
	if p.dropConnectionFields(h); len(h) != 1 || h["Content-Length"] == nil {
		t.Errorf("the rules see %v", h)
	}
}

// A client cannot hide its address by listing the field that carries it in Connection.
func TestConnectionHidesNoAddress(t *testing.T) {
	for name, value := range map[string]string{
		"X-Forwarded-For": "", "CF-Connecting-IP": "", "Forwarded": "for=",
	} {
		_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get(name))
		}, func(c *Config) {
			c.Client.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
			c.Client.Header = name
		})
		for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
			r, body := get(t, url, name, value+address, "Connection", name+", TE", "TE", "trailers")
			if r.Header.Get("RateLimit-Remaining") != "1" || !strings.HasPrefix(body, value+address) {
				t.Errorf("%s: %s, %v, %s", name, address, r.Header, body)
			}
		}
	}
}

// closedAfterEnd is a body that net/http has closed as soon as it was read to its end, as it does
// when the upstream answers.
type closedAfterEnd struct{ io.Reader }

func (b closedAfterEnd) Read(p []byte) (n int, err error) {
	if n, _ = b.Reader.Read(p); n == 0 {
		return 0, http.ErrBodyReadAfterClose
	}
	return n, io.EOF
}

func (closedAfterEnd) Close() error { return nil }

// An answer to a request with a body is not cut off because the answer was quick.
func TestQuickAnswerToABodyIsWhole(t *testing.T) {
	p, _, _ := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	r := httptest.NewRequest(http.MethodPost, "/", closedAfterEnd{strings.NewReader("hello")})
	r.ContentLength = 5
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "hello" {
		t.Error(w.Code, w.Body)
	}
	if !strings.Contains(scrape(t, p), `tb_responses_total{class="2xx"} 1`) {
		t.Error("the response is not counted")
	}
}

// A transport may read after the end of a request. No timer keeps the request then.
func TestReadAfterTheEndOfARequest(t *testing.T) {
	p, _, _ := start(t, "", nil)
	b := p.newBody(httptest.NewRecorder(), strings.NewReader("x"))
	b.release()
	_, _ = b.Read(make([]byte, 1))
	if b.stalled.Stop() {
		t.Error("a timer is running")
	}
}
