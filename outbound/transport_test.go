package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

// script is a base whose attempts have the answers of a function.
type script struct {
	mu      sync.Mutex
	begin   time.Time
	times   []time.Duration // of the attempts
	keys    []string        // of the attempts: their field Key
	latency time.Duration
	answer  func(n int, r *http.Request) *http.Response
}

// newScript returns a base that answers the attempts with these headers, and the rest with 200. The
// first line of a header is the status.
func newScript(headers ...string) *script {
	return &script{begin: time.Now(), answer: func(n int, r *http.Request) *http.Response {
		if n < len(headers) {
			return respond(r, headers[n])
		}
		return respond(r, "200")
	}}
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	s.mu.Lock()
	n := len(s.times)
	s.times = append(s.times, time.Since(s.begin))
	s.keys = append(s.keys, r.Header.Get("Key"))
	s.mu.Unlock()
	time.Sleep(s.latency)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return s.answer(n, r), nil
}

// sent returns the seconds at which the attempts were sent.
func (s *script) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, d := range s.times {
		all = append(all, fmt.Sprint(d.Seconds()))
	}
	return strings.Join(all, " ")
}

func (s *script) check(t *testing.T, want string) {
	t.Helper()
	if got := s.sent(); got != want {
		t.Errorf("sent at %s, want %s", got, want)
	}
}

func respond(r *http.Request, header string) *http.Response {
	first, lines, _ := strings.Cut(header, "\n")
	var status int
	fmt.Sscan(first, &status)
	h := http.Header{}
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.Add(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Request: r, Body: newBody("body")}
}

// watched is a body that records whether it is closed.
type watched struct {
	io.Reader
	closed atomic.Bool
}

func newBody(text string) *watched { return &watched{Reader: strings.NewReader(text)} }

func (b *watched) Close() error {
	b.closed.Store(true)
	return nil
}

// request returns a request with a key, which some of the rules use.
func request(ctx context.Context, key string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/v1", nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Key", key)
	return r
}

func keyOf(r *http.Request) string { return r.Header.Get("Key") }

// perSecond returns a rule whose keys are those of request.
func perSecond(name string, capacity int, rate float64) Rule {
	limit, err := tb.LimitPerSecond(capacity, rate)
	if err != nil {
		panic(err)
	}
	return Rule{Name: name, Limit: limit, Key: keyOf}
}

// sendAll sends a request with each key, one after another at the same time, and waits for all.
func sendAll(t *testing.T, client http.RoundTripper, keys ...string) {
	t.Helper()
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			if _, err := client.RoundTrip(request(t.Context(), key)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	all.Wait()
}

// bubble runs a test in a bubble of synctest.
func bubble(name string, f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { t.Run(name, func(t *testing.T) { synctest.Test(t, f) }) }
}

// leveler is the limiter of a rule in memory.
type leveler interface {
	Level(ctx context.Context, key string) (tb.Level, error)
}

var abc = []string{"a", "b", "c", "d", "e", "f"}

// The answers of a server, and when six requests are sent that come at the same time.
func TestPauses(t *testing.T) {
	const limit = "\nX-RateLimit-Limit: 3"
	for name, c := range map[string]struct {
		opts    []Option
		answers []string
		latency time.Duration
		want    string
	}{
		"no pause": {want: "0 0 0 0.5 1 1.5"},
		"a refusal moves what waits": {
			answers: []string{"200", "200", "200", "429\nRetry-After: 10"}, want: "0 0 0 0.5 10.5 11"},
		"a refusal that is shorter than the line": {
			answers: []string{"200", "200", "429\nRetry-After: 1"}, want: "0 0 0 1 1.5 2"},
		"a refusal that comes late": {latency: 700 * time.Millisecond,
			answers: []string{"200", "200", "503\nRetry-After: 10"}, want: "0 0 0 0.5 10.7 11.2"},
		"two refusals": {latency: 700 * time.Millisecond,
			answers: []string{"429\nRetry-After: 10", "429\nRetry-After: 7", "429\nRetry-After: 9"},
			want:    "0 0 0 0.5 10.7 11.2"},
		"nothing is left": {
			answers: []string{"200" + limit + "\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 20"},
			want:    "0 20 20.5 21 21.5 22"},
		"nothing is left, and the line is longer": {
			opts: []Option{PerHost(1, 0.1)},
			answers: []string{"200", "200",
				"200" + limit + "\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 20"},
			want: "0 10 20 30 40 50"},
		"something is left": {
			answers: []string{"200" + limit + "\nX-RateLimit-Remaining: 1\nX-RateLimit-Reset: 20"},
			want:    "0 0 0 0.5 1 1.5"},
		"a pause that is shorter than the supply of a token": {
			opts: []Option{PerHost(3, 0.1)}, answers: []string{"429\nRetry-After: 4"},
			want: "0 4 14 24 34 44"},
		"the longest pause": {
			opts:    []Option{PerHost(3, 2), WithMaxPause(time.Minute)},
			answers: []string{"429\nRetry-After: 1e308"}, want: "0 60 60.5 61 61.5 62"},
		"the longest pause by default": {
			answers: []string{"429\nRetry-After: 315360000"}, want: "0 3600 3600.5 3601 3601.5 3602"},
		"a refusal with a reset": {answers: []string{"429\nX-RateLimit-Reset: 5"},
			want: "0 5 5.5 6 6.5 7"},
		"a refusal without a wait": {answers: []string{"429"}, want: "0 0 0 0.5 1 1.5"},
		"a negative wait":          {answers: []string{"429\nRetry-After: -8"}, want: "0 0 0 0.5 1 1.5"},
		"not a refusal":            {answers: []string{"301\nRetry-After: 8"}, want: "0 0 0 0.5 1 1.5"},
	} {
		opts := c.opts
		if opts == nil {
			opts = []Option{PerHost(3, 2)}
		}
		bubble(name, func(t *testing.T) {
			s := newScript(c.answers...)
			s.latency = c.latency
			sendAll(t, New(s, opts...), abc...)
			s.check(t, c.want)
			if got := strings.Join(s.keys, ""); got != "abcdef" {
				t.Errorf("the order is %s", got)
			}
		})(t)
	}
}

// A server at its limit says in every answer that nothing is left for a second. One client at a
// time, which is as fast as the limit allows, stays as fast, whatever the latency is.
func TestPausesThatTheBucketCovers(t *testing.T) {
	for _, rate := range []float64{1, 2, 5} {
		for _, latency := range []time.Duration{0, 150 * time.Millisecond} {
			bubble(fmt.Sprint(rate, latency), func(t *testing.T) {
				s := newScript()
				s.latency = latency
				s.answer = func(_ int, r *http.Request) *http.Response {
					return respond(r, `200
						RateLimit: "a";r=0;t=1`)
				}
				client := New(s, PerHost(1, rate))
				for range 100 {
					sendAll(t, client, "a")
				}
				if got, want := s.times[99].Seconds(), 99/rate; got > 1.02*want {
					t.Errorf("the last attempt at %v s, want %v s", got, want)
				}
			})(t)
		}
	}
}

// Of several refusals with the same wait, one causes a pause.
func TestPauseCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const refused = "429\nRetry-After: 10"
		s := newScript(refused, refused, refused)
		s.latency = time.Second
		client := New(s, PerHost(3, 0.5))
		sendAll(t, client, "a", "b", "c", "d")
		s.check(t, "0 0 0 11")
		if got := client.Stats().Rules[0]; got.Held != 1 || got.Refused != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// The pause of one key delays no other.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429\nRetry-After: 100")
		client := New(s, Rules(perSecond("r", 1, 1)))
		sendAll(t, client, "slow", "b", "slow", "b", "c")
		s.check(t, "0 0 0 1 100")
		if got := strings.Join(s.keys, " "); got != "slow b c b slow" {
			t.Error(got)
		}
	})
}

// A pause is one of the limit that it names, or else of the limit with the longest wait.
func TestPauseOfOneLimit(t *testing.T) {
	requests, tokens := perSecond("requests", 10, 1), perSecond("tokens", 150, 100)
	requests.Key = func(*http.Request) string { return "all" }
	tokens.Unit = Tokens
	tokens.Cost = func(*http.Request) float64 { return 100 }
	for answer, want := range map[string]string{ // the attempts of the keys a, a, b, b
		"429\nRetry-After: 50": "0 0 0.5 50", // the tokens of a
		"429\nRetry-After: 50\nX-RateLimit-Remaining-Requests: 0\n" +
			"X-RateLimit-Reset-Requests: 9s": "0 50 51 52",
		"429\nRetry-After: 50\nX-RateLimit-Remaining-Tokens: 0\n" +
			"X-RateLimit-Reset-Tokens: 9s": "0 0 0.5 50",
		"200\nX-RateLimit-Remaining-Tokens: 0\nX-RateLimit-Reset-Tokens: 1m0s": "0 0 0.5 60",
		"200\nanthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: " +
			"2000-01-01T00:00:09Z": "0 9 10 11",
	} {
		bubble(answer, func(t *testing.T) {
			s := newScript(answer)
			sendAll(t, New(s, Rules(requests, tokens)), "a", "a", "b", "b")
			s.check(t, want)
		})(t)
	}
}

// All limits are taken from, or none.
func TestSeveralLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		second, minute := perSecond("second", 2, 1), perSecond("minute", 4, 0.1)
		client := New(s, Rules(minute, second))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		sendAll(t, client, "a", "a")
		if _, err := client.RoundTrip(request(ctx, "a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		sendAll(t, client, "a", "a", "a", "a")
		s.check(t, "0 0 1 2 10 20")
		const want = "[{minute 2 30s 0 0 0} {second 2 3s 1 0 0}]"
		if got := fmt.Sprint(client.Stats().Rules); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Rules may have the same name.
func TestRulesOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		client := New(s, PerHost(3, 1), PerHost(5, 0.1), PerHost(9, 9))
		sendAll(t, client, abc...)
		s.check(t, "0 0 0 1 2 10")
		var names []string
		for _, r := range client.Stats().Rules {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != "per-host per-host-2 per-host-3" {
			t.Error(got)
		}
	})
}

// If the deadline is too near, the error comes at once and has the wait. Nothing is taken.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		client := New(s, PerHost(1, 0.1))
		sendAll(t, client, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		body := newBody("")
		r := request(ctx, "a")
		r.Body = body
		_, err := (&http.Client{Transport: client}).Do(r)
		var wait *tb.WaitError
		if !errors.As(err, &wait) || wait.Wait != 10*time.Second || !wait.Deadline {
			t.Error(err)
		}
		if time.Since(s.begin) > 0 || !body.closed.Load() {
			t.Errorf("after %v, body closed: %t", time.Since(s.begin), body.closed.Load())
		}
		sendAll(t, client, "a")
		s.check(t, "0 10")
		if got := client.Stats().Rules[0]; got.TooLate != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A cost above the capacity has no wait.
func TestCostAboveTheCapacity(t *testing.T) {
	rule := perSecond("r", 10, 1)
	for _, cost := range []float64{10.5, 1e308, math.Inf(1)} {
		rule.Cost = func(*http.Request) float64 { return cost }
		_, err := New(newScript(), Rules(rule)).RoundTrip(request(t.Context(), "a"))
		var wait *tb.WaitError
		if !errors.As(err, &wait) || wait.Wait != tb.Never {
			t.Error(err)
		}
	}
}

// A wait that is cancelled gives its tokens back, and closes the body. A context that has ended
// takes nothing.
func TestCancel(t *testing.T) {
	for _, isUsage := range []bool{false, true} {
		bubble(fmt.Sprint(isUsage), func(t *testing.T) {
			s := newScript()
			rule := perSecond("r", 1, 0.1)
			if isUsage {
				rule.Usage = usage.Read
			}
			client := New(s, Rules(rule))
			sendAll(t, client, "a")
			ctx, cancel := context.WithCancel(t.Context())
			body := newBody("")
			r := request(ctx, "a")
			r.Body = body
			done := make(chan error)
			go func() {
				_, err := client.RoundTrip(r)
				done <- err
			}()
			synctest.Wait()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) || !body.closed.Load() {
				t.Errorf("%v, body closed: %t", err, body.closed.Load())
			}
			if _, err := client.RoundTrip(request(ctx, "a")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			sendAll(t, client, "a")
			s.check(t, "0 10")
		})(t)
	}
}

// If the answer of another attempt has settled upwards meanwhile, a wait that is cancelled gives
// all of its estimate back.
func TestCancelBehindASettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := perSecond("r", 10, 1)
		rule.Usage, rule.Cost = usage.Read, func(*http.Request) float64 { return 6 }
		s := newScript()
		s.answer = func(_ int, r *http.Request) *http.Response {
			w := respond(r, "200")
			w.Body = newBody(`{"usage": {"total_tokens": 8}}`)
			return w
		}
		client := New(s, Rules(rule))
		w, err := client.RoundTrip(request(t.Context(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = client.RoundTrip(request(ctx, "a")) }()
		synctest.Wait()
		_, _ = io.Copy(io.Discard, w.Body)
		cancel()
		synctest.Wait()
		l, err := client.limits[0].limiter.(leveler).Level(t.Context(), "a")
		if l.Tokens != 2 || err != nil {
			t.Error(l, err)
		}
	})
}

// A pause that ends after the deadline of an attempt that waits ends its wait at once.
func TestPauseBeyondADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429\nRetry-After: 100")
		s.latency = time.Second
		client := New(s, PerHost(1, 0.5))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for _, key := range []string{"a", "b", "c"} {
			all.Go(func() {
				if key != "b" {
					_, _ = client.RoundTrip(request(t.Context(), key))
					return
				}
				_, err := client.RoundTrip(request(ctx, key))
				var wait *tb.WaitError
				if !errors.As(err, &wait) || time.Since(s.begin) != time.Second ||
					wait.Wait != 100*time.Second {
					t.Errorf("after %v: %v", time.Since(s.begin), err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		s.check(t, "0 101")
	})
}

func TestRedirectsAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("302\nLocation: /v2", "302\nLocation: https://b.example.com:443/")
		client := &http.Client{Transport: New(s, PerHost(1, 1))}
		if _, err := client.Do(request(t.Context(), "a")); err != nil {
			t.Error(err)
		}
		s.check(t, "0 1 1")
	})
}

func TestHost(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.example.com/": "api.example.com", "https://a:443": "a", "https://a:8443": "a:8443",
		"http://a": "a:80", "http://a:80": "a:80", "http://[::1]": "[::1]:80", "http://a:": "a:80",
	} {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Host(r); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if got := Host(&http.Request{}); got != "" {
		t.Error(got)
	}
}

func TestRetries(t *testing.T) {
	const refused, again = "429\nRetry-After: 5", "0 5 10"
	for name, c := range map[string]struct {
		method  string
		body    string
		header  string
		timeout time.Duration
		noBody  bool // there is no GetBody
		badBody bool // GetBody fails
		want    string
		status  int
	}{
		"":                    {method: "GET", want: again, status: 200},
		"a body":              {method: "PUT", body: "text", want: again, status: 200},
		"a body without two":  {method: "PUT", body: "text", noBody: true, want: "0", status: 429},
		"a body that is gone": {method: "PUT", body: "text", badBody: true, want: "0", status: 429},
		"not idempotent":      {method: "POST", body: "text", want: "0", status: 429},
		"with a key": {method: "POST", body: "text", header: "Idempotency-Key", want: again,
			status: 200},
		"too late":  {method: "GET", timeout: 7 * time.Second, want: "0 5", status: 429},
		"too often": {method: "GET", header: "Refuse", want: again, status: 429},
	} {
		bubble(name, func(t *testing.T) {
			s := newScript(refused, refused)
			if c.header == "Refuse" {
				s = newScript(refused, refused, refused)
			}
			var bodies []*watched
			answer := s.answer
			s.answer = func(n int, r *http.Request) *http.Response {
				if r.Body != nil {
					if text, err := io.ReadAll(r.Body); string(text) != c.body || err != nil {
						t.Errorf("attempt %d: %q %v", n, text, err)
					}
				}
				w := answer(n, r)
				bodies = append(bodies, w.Body.(*watched))
				return w
			}
			ctx := t.Context()
			if c.timeout > 0 {
				limited, cancel := context.WithTimeout(ctx, c.timeout)
				defer cancel()
				ctx = limited
			}
			r, err := http.NewRequestWithContext(ctx, c.method, "https://a", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.noBody {
				r.GetBody = nil
			}
			if c.badBody {
				r.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }
			}
			if c.header != "" {
				r.Header.Set(c.header, "1")
			}
			w, err := New(s, PerHost(10, 1), WithRetries(2)).RoundTrip(r)
			if err != nil || w.StatusCode != c.status {
				t.Fatal(w, err)
			}
			s.check(t, c.want)
			for i, b := range bodies {
				if isLast := i == len(bodies)-1; b.closed.Load() == isLast {
					t.Errorf("the body of response %d of %d is closed: %t", i, len(bodies), isLast)
				}
			}
		})(t)
	}
}

// A Usage settles the estimate when the body ends, and only then.
func TestUsage(t *testing.T) {
	const capacity = 1000
	for name, c := range map[string]struct {
		header, body string
		estimate     float64
		isClosed     bool // early, after the first 29 bytes
		want         float64
	}{
		"less":           {"200", `{"usage": {"total_tokens": 30}}`, 100, false, 30},
		"more":           {"200", `{"usage": {"total_tokens": 300}}`, 100, false, 300},
		"none":           {"200", `{}`, 100, false, 100},
		"cut off":        {"200", `{"usage": {"total_tokens": 30}}`, 100, true, 100},
		"closed at once": {"200", `{"usage":{"total_tokens":8}   }`, 100, true, 8},
		"compressed": {"200\nContent-Encoding: br", `{"usage": {"total_tokens": 30}}`,
			100, false, 100},
		"refused":          {"429", `{"usage": {"total_tokens": 30}}`, 100, false, 0},
		"too much":         {"200", `{"usage": {"total_tokens": 30}}`, 1e9, false, 30},
		"not a number":     {"200", `{}`, -1, false, 1},
		"another protocol": {"101", `{"usage": {"total_tokens": 30}}`, 100, false, 100},
	} {
		bubble(name, func(t *testing.T) {
			rule := perSecond("tokens", capacity, 1)
			rule.Unit, rule.Usage = Tokens, usage.Read
			rule.Cost = func(*http.Request) float64 { return c.estimate }
			s := newScript()
			var inner *watched
			s.answer = func(_ int, r *http.Request) *http.Response {
				w := respond(r, c.header)
				inner = newBody(c.body)
				w.Body = inner
				return w
			}
			client := New(s, Rules(rule))
			left := func() float64 {
				l, err := client.limits[0].limiter.(leveler).Level(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				return l.Tokens
			}
			w, err := client.RoundTrip(request(t.Context(), "a"))
			if err != nil {
				t.Fatal(err)
			}
			want := max(1, min(c.estimate, capacity))
			if got := capacity - left(); c.header == "200" && got != want {
				t.Errorf("%v taken during the response, want %v", got, want)
			}
			if c.isClosed {
				_, err = io.CopyN(io.Discard, w.Body, 29)
			} else {
				var text []byte
				text, err = io.ReadAll(w.Body)
				if string(text) != c.body {
					t.Errorf("read %q", text)
				}
			}
			for range 2 {
				err = errors.Join(err, w.Body.Close())
			}
			if got := capacity - left(); err != nil || got != c.want || !inner.closed.Load() {
				t.Errorf("%v taken, want %v, %v, closed %t", got, c.want, err, inner.closed.Load())
			}
			if _, isWrapped := w.Body.(*body); isWrapped != (c.header == "200") {
				t.Errorf("%T", w.Body)
			}
		})(t)
	}
}

// A Cost may put another body in place of that of its request.
func TestCostMayReplaceTheBody(t *testing.T) {
	rule := perSecond("tokens", 1000, 1)
	rule.Cost = usage.Estimate
	s := newScript()
	s.answer = func(_ int, r *http.Request) *http.Response {
		if text, err := io.ReadAll(r.Body); string(text) != `{"max_tokens": 300}` || err != nil {
			t.Errorf("%q %v", text, err)
		}
		return respond(r, "200")
	}
	client := New(s, Rules(rule))
	r, err := http.NewRequest(http.MethodPost, "https://a", strings.NewReader(`{"max_tokens": 300}`))
	if err != nil {
		t.Fatal(err)
	}
	before := r.Body
	if _, err := client.RoundTrip(r); err != nil || r.Body != before {
		t.Error(err)
	}
	if l, err := client.limits[0].limiter.(leveler).Level(t.Context(), ""); l.Tokens > 701 {
		t.Error(l, err)
	}
}

// failing is a store that fails, after it has called its function.
type failing struct {
	httplimit.Store
	f func()
}

func (s failing) TakeAll(context.Context, time.Time, []tb.Charge, []tb.Decision) (
	[]tb.Decision, bool, error,
) {
	s.f()
	return nil, false, errors.New("the store is down")
}

func TestContextThatEndsInTheStore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := New(newStill(), WithStore(failing{httplimit.Memory(), cancel}))
	if _, err := client.RoundTrip(request(ctx, "a")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// broken is a store whose limiters fail.
type broken struct{ httplimit.Store }

type brokenLimiter struct{ limiter }

func (s broken) Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error) {
	all, err := s.Store.Limiters(rule, limits)
	return []tb.StoreLimiter{brokenLimiter{all[0].(limiter)}}, err
}

func (brokenLimiter) Charge(string, float64) (tb.StoreCharge, error) {
	return nil, errors.New("the store is down")
}

func (brokenLimiter) Hold(context.Context, string, time.Time) error {
	return errors.New("the store is down")
}

func TestStoreThatFails(t *testing.T) {
	for store, failures := range map[httplimit.Store]uint64{
		&failing{httplimit.Memory(), func() {}}: 2, &broken{httplimit.Memory()}: 3, // and a pause
	} {
		bubble(fmt.Sprintf("%T", store), func(t *testing.T) {
			var seen error
			s := newScript("429\nRetry-After: 9")
			client := New(s, PerHost(1, 1), WithStore(store),
				WithHooks(Hooks{Error: func(_ *http.Request, err error) { seen = err }}))
			sendAll(t, client, "a", "a")
			s.check(t, "0 0")
			if got := client.Stats(); got.Failures != failures || seen == nil {
				t.Error(got, seen)
			}
		})(t)
	}
}

func TestHooksAndStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		var events []string
		add := func(event ...any) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprint(event...))
		}
		s := newScript("200", "429\nRetry-After: 10")
		client := New(s, Rules(perSecond("api", 1, 1)),
			WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithHooks(Hooks{
				Waits: func(_ *http.Request, rule string, d time.Duration) {
					add("waits ", rule, d)
				},
				Held: func(_ *http.Request, rule string, d time.Duration) {
					add("held ", rule, d)
				},
				Refused: func(_ *http.Request, rule string, w *http.Response) {
					add("refused ", rule, w.StatusCode)
				},
			}))
		sendAll(t, client, "secret", "secret", "secret")
		want := "waits api1s, waits api2s, refused api429, held api10s"
		if got := strings.Join(events, ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		stats := client.Stats()
		if got, want := fmt.Sprint(stats), "{3 0 [{api 2 3s 0 1 1}]}"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if text := log.String(); !strings.Contains(text, "rule=api") || strings.Contains(text, "secret") {
			t.Error(text)
		}
	})
}

func TestNewPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"capacity": func() { PerHost(0, 1) }, "rate": func() { PerHost(1, 0) },
		"limit":    func() { New(nil, Rules(Rule{Limit: tb.Limit{Capacity: 1}})) },
		"margin":   func() { New(nil, PerHost(5, 1), Margin(5*time.Second)) },
		"negative": func() { New(nil, PerHost(5, 1), Margin(-1)) },
		"store":    func() { New(nil, WithStore(noHold{httplimit.Memory()})) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(error); !ok {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// noHold is a store without the method Hold.
type noHold struct{ httplimit.Store }

func (noHold) Limiters(string, []tb.Limit) ([]tb.StoreLimiter, error) {
	return []tb.StoreLimiter{struct{ tb.StoreLimiter }{}}, nil
}

func TestBase(t *testing.T) {
	if New(nil).base != http.DefaultTransport {
		t.Error("the default base is another one")
	}
	idle := &closing{}
	client := &http.Client{Transport: New(idle)}
	client.CloseIdleConnections()
	if !idle.closed {
		t.Error("the idle connections of the base are not closed")
	}
	_, err := New(idle).RoundTrip(request(t.Context(), "a"))
	if err == nil || err.Error() != "no connection" {
		t.Error(err)
	}
}

type closing struct{ closed bool }

func (*closing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no connection")
}
func (c *closing) CloseIdleConnections() { c.closed = true }
