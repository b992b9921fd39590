package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The limit and the estimate of the policy, and the longest answer.
const (
	burst    = 20_000
	rate     = 1000 // tokens a second
	estimate = 800
	most     = 3000
)

// model is a language model. It takes up to a minute for an answer of 10 to most tokens, and most
// answers are short.
type model struct {
	mu     sync.Mutex
	random *rand.Rand
	used   float64 // tokens
}

func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	x := m.random.Float64()
	tokens := float64(10 + int((most-10)*x*x))
	m.used += tokens
	length := time.Duration(m.random.Int64N(int64(time.Minute)))
	m.mu.Unlock()
	time.Sleep(length)
	body := fmt.Sprintf(`{"choices": [], "usage": {"total_tokens": %v}}`, tokens)
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// 64 callers with one API key ask the model for ten minutes. Each asks again as soon as it has its
// answer, or when Retry-After is over. They use what the rate and the burst allow, except for the
// errors of the estimates of the answers under way.
func TestTokensAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, duration = 64, 10 * time.Minute
		m, start := &model{random: rand.New(rand.NewPCG(1, 2))}, time.Now()
		proxy, limiter, err := newProxy(&url.URL{Scheme: "http", Host: "model"}, m)
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for i := range callers {
			wait.Go(func() {
				for time.Since(start) < duration {
					r := httptest.NewRequest(http.MethodPost, "/v1/chat", nil)
					r.Header.Set("Authorization", "Bearer k")
					r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i)
					w := httptest.NewRecorder()
					proxy.ServeHTTP(w, r)
					if seconds, _ := strconv.Atoi(w.Header().Get("Retry-After")); seconds > 0 {
						time.Sleep(time.Duration(seconds) * time.Second)
					}
				}
			})
		}
		wait.Wait()
		supply := rate * duration.Seconds()
		if m.used < 0.95*supply || m.used > supply+burst+callers*(most-estimate) {
			t.Errorf("the callers used %v tokens of %v", m.used, supply)
		}
		if s := limiter.Stats()[0].Table; math.Abs(s.Settled-m.used) > 1 || s.Unpaid > 0 {
			t.Errorf("%v tokens settled of %v, and %v unpaid", s.Settled, m.used, s.Unpaid)
		}
	})
}

// An answer costs its usage, also if the model compresses it as the client asks. A request is free
// if there is no connection to the model.
func TestUsage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.Header.Get("Accept-Encoding"))
		body := gzip.NewWriter(w)
		defer body.Close()
		fmt.Fprint(body, `{"usage": {"total_tokens": 2500}}`)
	}))
	defer server.Close()
	for address, want := range map[string]struct {
		status int
		tokens float64
	}{server.Listener.Addr().String(): {200, 2500}, "127.0.0.1:1": {502, 0}} {
		proxy, limiter, err := newProxy(&url.URL{Scheme: "http", Host: address}, http.DefaultTransport)
		if err != nil {
			t.Fatal(err)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat", nil)
		r.Header = http.Header{"Authorization": {"Bearer k"}, "Accept-Encoding": {"gzip"}}
		proxy.ServeHTTP(w, r)
		s := limiter.Stats()[0]
		if w.Code != want.status || s.Settled != 1 || s.Table.Settled != want.tokens {
			t.Errorf("%s: status %d, %+v", address, w.Code, s)
		}
	}
}
