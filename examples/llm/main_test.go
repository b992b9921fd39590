package main

import (
	"fmt"
	"io"
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

// The limit and the estimate of the policy.
const (
	burst    = 20_000
	rate     = 1000 // tokens a second
	estimate = 800
)

// answer is one answer of the model, whose request was granted at a time.
type answer struct {
	granted, settled time.Duration
	tokens           float64
}

// model is a language model. It takes up to a minute for an answer of 10 to 3,000 tokens, and most
// answers are short.
type model struct {
	mu      sync.Mutex
	start   time.Time
	random  *rand.Rand
	answers []*answer
}

func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	x := m.random.Float64()
	a := &answer{granted: time.Since(m.start), tokens: float64(10 + int(2990*x*x))}
	m.answers = append(m.answers, a)
	length := time.Duration(m.random.Int64N(int64(time.Minute)))
	m.mu.Unlock()
	time.Sleep(length)
	a.settled = time.Since(m.start) // the proxy settles at this time, too
	body := fmt.Sprintf(`{"choices": [], "usage": {"total_tokens": %v}}`, a.tokens)
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// run has 64 callers with one API key ask the model for ten minutes. Each asks again as soon as it
// has its answer, or when Retry-After is over. run returns the tokens that were not paid.
func (m *model) run(t *testing.T) (unpaid float64) {
	m.start, m.random = time.Now(), rand.New(rand.NewPCG(1, 2))
	proxy, limiter, err := newProxy(&url.URL{Scheme: "http", Host: "model"}, m)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			for time.Since(m.start) < 10*time.Minute {
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
	return limiter.Stats()[0].Table.Unpaid
}

// excess returns the most tokens, over all intervals, by which the answers that were granted in an
// interval exceed burst + rate · time, and by which they exceed the bound of docs/policy.md.
func (m *model) excess(unpaid float64) (overC1, overBound float64) {
	tooLow := make([]float64, len(m.answers)) // the estimates under way at a grant
	for last := range m.answers {
		for _, a := range m.answers[:last+1] {
			if a.settled >= m.answers[last].granted {
				tooLow[last] += max(0, a.tokens-estimate)
			}
		}
	}
	for first := range m.answers {
		from := m.answers[first].granted
		tooHigh, sum := unpaid, 0.0
		for _, a := range m.answers[:first] {
			if a.settled >= from {
				tooHigh += max(0, estimate-a.tokens)
			}
		}
		for last := first; last < len(m.answers); last++ {
			to := m.answers[last].granted
			sum += m.answers[last].tokens
			over := sum - burst - rate*(to-from).Seconds()
			overC1, overBound = max(overC1, over), max(overBound, over-tooHigh-tooLow[last])
		}
	}
	return overC1, overBound
}

// 64 callers never use more than the rate and the burst allow, except for the errors of the
// estimates of the answers under way.
func TestTokensAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{}
		unpaid := m.run(t)
		overC1, overBound := m.excess(unpaid)
		if overBound > 0.01 {
			t.Errorf("%v tokens above the bound", overBound)
		}
		if overC1 <= 0 {
			t.Error("the errors of the estimates did not matter")
		}
		if unpaid > 0 {
			t.Errorf("%v tokens unpaid", unpaid)
		}
		used := 0.0
		for _, a := range m.answers {
			used += a.tokens
		}
		if policy := float64(rate * 600); used < 0.95*policy {
			t.Errorf("the callers used %v tokens of %v", used, policy)
		}
		t.Logf("%d answers with %v tokens, at most %v above burst and rate", len(m.answers), used, overC1)
	})
}

// A request is free if there is no connection to the model.
func TestUnansweredRequestIsFree(t *testing.T) {
	nothing := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	proxy, limiter, err := newProxy(nothing, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat", nil)
	r.Header.Set("Authorization", "Bearer k")
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, r)
	if left := limiter.Explain(r)[0].Level.Tokens; w.Code != http.StatusBadGateway || left != burst {
		t.Errorf("status %d, %v tokens left", w.Code, left)
	}
}
