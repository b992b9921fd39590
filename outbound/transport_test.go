package outbound

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

// script is a base whose attempts have the answers of a function.
type script struct {
	mu      sync.Mutex
	begin   time.Time
	keys    []string // of the attempts: their field Key, and their body
	events  []string // the seconds at which they were sent, or a request has failed
	bodies  []*watched
	latency time.Duration
	answer  func(n int, r *http.Request) *http.Response
}

// newScript returns a base with these answers, and 200 for the rest. Behind the status and an empty
// line an answer may have a body. "200 late" comes when the context has ended.
func newScript(headers ...string) *script {
	return &script{begin: time.Now(), answer: func(n int, r *http.Request) *http.Response {
		if n >= len(headers) {
			return respond(r, "200")
		}
		if headers[n] == "200 late" {
			<-r.Context().Done()
		}
		return respond(r, headers[n])
	}}
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	key := keyOf(r)
	if r.Body != nil {
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		key += string(text)
	}
	s.happens("")
	s.mu.Lock()
	n := len(s.keys)
	s.keys = append(s.keys, key)
	s.mu.Unlock()
	time.Sleep(s.latency)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := s.answer(n, r)
	s.mu.Lock()
	s.bodies = append(s.bodies, w.Body.(*watched))
	s.mu.Unlock()
	return w, nil
}

func (s *script) happens(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprint(time.Since(s.begin).Seconds())+what)
}

// check compares when the attempts were sent with a list of seconds.
func (s *script) check(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(s.events, " "); got != want {
		t.Errorf("sent at %s, want %s", got, want)
	}
}

func respond(r *http.Request, header string) *http.Response {
	header, text, _ := strings.Cut(header, "\n\n")
	first, lines, _ := strings.Cut(header, "\n")
	var status int
	fmt.Sscan(first, &status)
	h := http.Header{}
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(line, ":")
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return &http.Response{StatusCode: status, Header: h, Request: r, Body: newBody(text)}
}

type watched struct {
	io.Reader
	text   string
	closed atomic.Bool
}

func newBody(text string) *watched { return &watched{Reader: strings.NewReader(text), text: text} }

func (b *watched) Close() error {
	b.closed.Store(true)
	return nil
}

func request(ctx context.Context, key string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/v1", nil)
	r.Header.Set("Key", key)
	r.RequestURI = "" // or else http.Client does not send it
	return r
}

func keyOf(r *http.Request) string { return r.Header.Get("Key") }

func perSecond(name string, capacity int, rate float64) Rule {
	limit := tb.Limit{Capacity: capacity, Tokens: int64(100 * rate), Per: 100 * time.Second}
	return Rule{Name: name, Limit: limit, Key: keyOf}
}

type scene struct {
	opts      []Option
	processes int // with one store; 0 for one with a store of its own
	answers   []string
	latency   time.Duration
	send      string
	want      string // see script.check; a request that fails has its error, too
	order     string // of the keys that are sent, if it is not the one of send
	stats     string // of the first process
}

// play plays scenes, with what a scene does not have from another one.
func play(t *testing.T, otherwise scene, scenes map[string]scene) {
	for name, c := range scenes {
		if c.opts == nil {
			c.opts = otherwise.opts
		}
		c.send = cmp.Or(c.send, otherwise.send)
		c.order = cmp.Or(c.order, strings.ReplaceAll(c.send, ", ", ""))
		bubble(name, func(t *testing.T) {
			s := newScript(c.answers...)
			s.latency = cmp.Or(c.latency, otherwise.latency)
			if c.processes > 0 {
				c.opts = append(slices.Clip(c.opts), WithStore(newShared()))
			}
			var clients []http.RoundTripper
			for range max(c.processes, 1) {
				clients = append(clients, New(s, c.opts...))
			}
			send(t, s, c.send, clients...)
			s.check(t, c.want)
			if got := strings.Join(s.keys, " "); got != c.order {
				t.Errorf("the order is %s, want %s", got, c.order)
			}
			if got := fmt.Sprint(clients[0].(*Transport).Stats()); c.stats != "" && got != c.stats {
				t.Errorf("stats %s, want %s", got, c.stats)
			}
		})(t)
	}
}

// send sends a request with each key of a list, one after another at the same time, by each of the
// clients in turn, and waits for all. At a comma it waits for those before. A key may have a sign
// and seconds: a@9 is sent 9 seconds after the beginning, a<9 has 9 seconds until its deadline, and
// the context of a!9 is cancelled after 9 seconds.
func send(t *testing.T, s *script, keys string, clients ...http.RoundTripper) {
	var all sync.WaitGroup
	n := 0
	for word := range strings.FieldsSeq(keys) {
		if word == "," {
			all.Wait()
			continue
		}
		client := clients[n%len(clients)]
		n++
		sign, seconds := ' ', 0.0
		end := strings.IndexAny(word+"@", "@<!")
		_, _ = fmt.Sscanf(word[end:], "%c%g", &sign, &seconds)
		d := time.Duration(seconds * 1e9)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		switch sign {
		case '@':
			time.Sleep(time.Until(s.begin.Add(d)))
		case '<':
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		case '!':
			time.AfterFunc(d, cancel)
		}
		synctest.Wait()
		all.Go(func() {
			r := request(ctx, word[:end])
			body := newBody("")
			r.Body = body
			var wait *tb.WaitError
			if w, err := client.RoundTrip(r); err == nil {
				_, _ = io.Copy(io.Discard, w.Body)
			} else if errors.As(err, &wait) {
				s.happens(fmt.Sprintf("(%v %t)", wait.Wait, wait.Deadline))
			} else {
				s.happens(fmt.Sprintf("(%v)", err))
			}
			if !body.closed.Load() {
				t.Errorf("the body of %s is not closed", word)
			}
		})
	}
	all.Wait()
}

func bubble(name string, f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { t.Run(name, func(t *testing.T) { synctest.Test(t, f) }) }
}

// The answers of a server, and when requests are sent that come at the same time.
func TestPauses(t *testing.T) {
	const left = "200\nX-RateLimit-Limit: 3\nX-RateLimit-Reset: 20\nX-RateLimit-Remaining: "
	play(t, scene{opts: []Option{PerHost(3, 2)}, send: "a b c d e f"}, map[string]scene{
		"a refusal moves what waits": {
			answers: []string{"200", "200", "200", "429\nRetry-After: 10"}, want: "0 0 0 0.5 10.5 11"},
		"nothing is left":   {answers: []string{left + "0"}, want: "0 20 20.5 21 21.5 22"},
		"something is left": {answers: []string{left + "1"}, want: "0 0 0 0.5 1 1.5"},
		"nothing is left, for a second more than the bucket says": {opts: []Option{PerHost(1, 1)},
			answers: []string{"200\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 2"},
			want:    "0 2 3 4 5 6"},
		"nothing is left, and the line is longer": {opts: []Option{PerHost(1, 0.1)},
			answers: []string{"200", "200", left + "0"}, want: "0 10 20 30 40 50"},
		"a pause that is shorter than the supply of a token": {opts: []Option{PerHost(3, 0.1)},
			answers: []string{"429\nRetry-After: 4"}, want: "0 4 14 24 34 44"},
		"the longest pause by default, without a limit": {opts: []Option{}, send: "a , b",
			answers: []string{"429\nRetry-After: 315360000"}, want: "0 3600"},
		"a refusal with reset": {answers: []string{"429\nX-RateLimit-Reset: 5"}, want: "0 5 5.5 6 6.5 7"},
		"a pause that could supply more than a debt": {opts: []Option{PerHost(3, 1e6)},
			answers: []string{"429\nRetry-After: 3000"}, send: "a , b c d@3000",
			order: "a b c d", want: "0 3000 3000.000001 3000.000002"},
		"a date, without a Date of the server": {
			answers: []string{"429\nDate: now\nRetry-After: Sat, 01 Jan 2000 00:00:30 GMT"},
			want:    "0 30 30.5 31 31.5 32"},
		"no pause that the bucket's own wait covers": {opts: []Option{PerHost(1, 0.1)},
			answers: []string{"200", "200", "200\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 10.5"},
			send:    "a b c , d", processes: 1, want: "0 10 20 30.5"},
		// An attempt keeps its slot among the slots of other processes.
		"a pause that ends before what waits is due": {opts: []Option{PerHost(1, 0.1)},
			answers: []string{"429\nRetry-After: 4"}, latency: time.Second, processes: 2,
			send: "a b c d", want: "0 10 20 30", stats: "{2 0 [{per-host 1 20s 0 0 1}]}"},
		// What waits gives all of it back, because the last one does first.
		"a pause that ends before the line does": {opts: []Option{PerHost(1, 0.1)},
			answers: []string{"429\nRetry-After: 15"}, latency: time.Second, processes: 1,
			send: "a b c d", want: "0 16 26 36"},
		"several refusals with the same wait": {opts: []Option{PerHost(3, 0.5)},
			answers: slices.Repeat([]string{"429\nRetry-After: 10"}, 3),
			latency: time.Second, send: "a b c d", want: "0 0 0 11",
			stats: "{4 0 [{per-host 1 11s 0 1 3}]}"},
		// One client at a time, which is as fast as the limit allows, stays as fast.
		"several answers of a server at its limit": {opts: []Option{PerHost(1, 2)},
			answers: slices.Repeat([]string{"200\nRateLimit: \"a\";r=0;t=1"}, 4),
			latency: 150 * time.Millisecond, send: "a , a , a , a", want: "0 0.5 1 1.5", order: "a a a a"},
		"a pause beyond the deadline of what waits": {opts: []Option{PerHost(1, 0.5)},
			answers: []string{"429\nRetry-After: 100"}, latency: time.Second,
			send: "a b<50 c", want: "0 1(1m40s true) 101", order: "a c"},
	})
}

// A pause is one of the limit that it names, or else of the limit with the longest wait.
func TestPauseOfOneLimit(t *testing.T) {
	requests, tokens := perSecond("requests", 10, 1), perSecond("tokens", 150, 100)
	requests.Key = func(*http.Request) string { return "all" }
	tokens.Unit = Tokens
	tokens.Cost = func(*http.Request) float64 { return 100 }
	const wait = "429\nRetry-After: 50"
	play(t, scene{opts: []Option{Rules(requests, tokens)}, send: "a a b b"}, map[string]scene{
		"none": {answers: []string{wait}, want: "0 0 0.5 50", order: "a b b a"}, // the tokens of a
		"requests": {answers: []string{wait +
			"\nX-RateLimit-Remaining-Requests: 0\nX-RateLimit-Reset-Requests: 9s"},
			want: "0 50 51 52"},
		"tokens": {want: "0 0 0.5 50", order: "a b b a", answers: []string{wait +
			"\nX-RateLimit-Remaining-Tokens: 0\nX-RateLimit-Reset-Tokens: 9s" +
			"\nX-RateLimit-Remaining-Requests: 5\nX-RateLimit-Reset-Requests: 9s"}},
	})
}

func TestWaits(t *testing.T) {
	costly, requests := perSecond("r", 10, 1), perSecond("q", 1, 1)
	costs := map[string]float64{"b": 10.5, "c": 1e308, "d": math.Inf(1), "e": 10, "f": 3, "g": 0.1}
	costly.Cost = func(r *http.Request) float64 { return costs[keyOf(r)] }
	costly.Key, requests.Key = Host, Host
	settled := costly
	settled.Unit, settled.Usage = Tokens, usage.Read
	sixes := settled
	sixes.Cost = func(*http.Request) float64 { return 6 }
	own, wide := settled, sixes
	own.Key, wide.Limit.Capacity = keyOf, 1000
	two := []string{"200\n\n" + `{"usage": {"total_tokens": 2}}`}
	slow := newShared()
	slow.before = func(call, _ string) error {
		time.Sleep(map[string]time.Duration{"hold": time.Second}[call])
		return nil
	}
	play(t, scene{opts: []Option{Rules(perSecond("r", 1, 0.1))}}, map[string]scene{
		"several limits": {opts: []Option{Rules(perSecond("minute", 4, 0.1), perSecond("second", 2, 1))},
			send: "a a , a<0.5 a a a a", want: "0 0 0(1s true) 1 2 10 20", order: "a a a a a a",
			stats: "{6 0 [{minute 2 30s 0 0 0} {second 2 3s 1 0 0}]}"},
		"rules of one name": {send: "a b c d e f", want: "0 0 0 1 2 10",
			opts:  []Option{Rules(perSecond("per-host-2", 9, 9)), PerHost(3, 1), PerHost(5, 0.1)},
			stats: "{6 0 [{per-host-2 0 0s 0 0 0} {per-host 2 3s 0 0 0} {per-host-3 1 10s 0 0 0}]}"},
		"a cost above the capacity": {opts: []Option{Rules(costly)}, send: "a b c d", order: "a",
			want: "0" + strings.Repeat(fmt.Sprintf(" 0(%v false)", tb.Never), 3)},
		"a pause, after a refused attempt that costs more": {opts: []Option{Rules(costly)},
			answers: []string{"429\nRetry-After: 8"}, latency: time.Second / 2, order: "e a a",
			send: "e a<5 a!1 a@2 a", want: "0 0.5(8s true) 1(context canceled) 8.5 9.5",
			stats: "{3 0 [{r 4 15.5s 1 0 1}]}"},
		"a pause, after that, while the store is slow": {opts: []Option{Rules(costly), WithStore(slow)},
			answers: []string{"429\nRetry-After: 8"}, send: "e , a a", want: "0 8 9", order: "e a a"},
		"contexts that end": {send: "a a!1 a!0 a@2", order: "a a",
			want: "0 0(context canceled) 1(context canceled) 10"},
		"a context that ends while another attempt waits behind": {send: "a a!1 a a@2",
			want: "0 1(context canceled) 20 30", order: "a a a"},
		// What comes back moves what waits, in its order, and not faster than the other rule allows.
		"estimates that were too high": {opts: []Option{Rules(settled, requests)}, answers: two,
			latency: 2 * time.Second, send: "e f a f", want: "0 2 3 4"},
		"an estimate that was too high, and a deadline before the other rule": {answers: two,
			opts: []Option{Rules(own), PerHost(1, 0.4)}, latency: 8500 * time.Millisecond,
			send: "e e<10.2 e f@8", order: "e f e", want: "0 8 8.5(2s true) 10.5"},
		"an estimate a bit too high, and another key": {opts: []Option{Rules(own), PerHost(1, 0.25)},
			answers: []string{"200\n\n" + `{"usage": {"total_tokens": 9}}`}, latency: 2 * time.Second,
			send: "e e f@1", want: "0 8 12", order: "e f e"},
		"costs that one rule supplies faster than the other": {order: "e e g",
			opts: []Option{Rules(costly, requests)}, send: "e e g g<11.9",
			want: "0 10 10.2(1.8s true) 11", stats: "{3 0 [{r 3 31.2s 0 0 0} {q 0 0s 1 0 0}]}"},
		"estimates that were too low for a deadline": {order: "a", send: "a a<15",
			opts:    []Option{Rules(sixes, wide, perSecond("q", 1, 0.1))},
			answers: []string{"200\n\n" + `{"usage": {"total_tokens": 100}}`}, latency: time.Second / 2,
			want: "0 0.5(16s true)"},
		"an estimate that was too high, in a pause": {opts: []Option{Rules(sixes, perSecond("q", 9, 9))},
			answers: []string{"200\nanthropic-ratelimit-requests-remaining: 0\n" +
				"anthropic-ratelimit-requests-reset: 1.2s\n\n" + `{"usage": {"total_tokens": 2}}`},
			latency: time.Second / 2, send: "a a", want: "0 1.7"},
		"estimates, in a pause that does not move another process": {opts: []Option{Rules(sixes)},
			answers: []string{"200\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 9"}, processes: 2,
			latency: time.Second, send: "a b c d", order: "a b d c", want: "0 2 14 20"},
		"refusals without a wait": {opts: []Option{Rules(sixes)}, answers: []string{"429", "429"},
			latency: time.Second, send: "a a a", want: "0 2 8"},
		// All of the estimate comes back, also behind a settlement of more than another estimate.
		"a context that ends behind a settlement": {opts: []Option{Rules(sixes)},
			answers: []string{"200\n\n" + `{"usage": {"total_tokens": 8}}`}, latency: time.Second / 2,
			send: "a a!1 a@2", order: "a a", want: "0 1(context canceled) 4"},
	})
}

func TestHost(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.example.com/": "api.example.com", "https://a:443": "a", "https://a:8443": "a:8443",
		"http://a": "a:80", "http://a:80": "a:80", "http://[::1]": "[::1]:80", "http://a:": "a:80",
	} {
		if got := Host(httptest.NewRequest(http.MethodGet, url, nil)); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	if got := Host(&http.Request{}); got != "" {
		t.Error(got)
	}
}

func TestRetries(t *testing.T) {
	again := func(err error) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return newBody("text"), err }
	}
	for name, c := range map[string]struct {
		method   string
		key      []string
		body     io.Reader
		getBody  func() (io.ReadCloser, error)
		refusals int
		deadline float64
		want     string
	}{
		"a body":             {"PUT", nil, newBody("text"), again(nil), 2, 99, "0 5 10"},
		"no body":            {"GET", nil, nil, nil, 2, 99, "0 5 10"},
		"a body without two": {"PUT", nil, newBody("text"), nil, 2, 99, "0"},
		"a body that fails":  {"PUT", nil, newBody("text"), again(io.EOF), 2, 99, "0"},
		"not idempotent":     {"POST", nil, newBody("text"), again(nil), 2, 99, "0"},
		"with a key":         {"POST", []string{"1"}, newBody("text"), again(nil), 2, 99, "0 5 10"},
		"too late":           {"PUT", nil, newBody("text"), again(nil), 2, 7, "0 5"},
		"too often":          {"PUT", nil, newBody("text"), again(nil), 3, 99, "0 5 10"},
	} {
		bubble(name, func(t *testing.T) {
			s := newScript(slices.Repeat([]string{"429\nRetry-After: 5"}, c.refusals)...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(c.deadline*1e9))
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, c.method, "https://a", c.body)
			r.GetBody, r.Header["Idempotency-Key"] = c.getBody, c.key
			w, err := New(s, PerHost(10, 1), WithRetries(2)).RoundTrip(r)
			s.check(t, c.want)
			isRefused := len(s.keys) <= c.refusals
			if err != nil || isRefused != (w.StatusCode == http.StatusTooManyRequests) {
				t.Error(w, err)
			}
			if got := slices.Compact(s.keys); len(got) > 1 || (got[0] == "text") != (c.body != nil) {
				t.Errorf("bodies %q", got)
			}
			for i, b := range s.bodies {
				if isLast := i == len(s.bodies)-1; b.closed.Load() == isLast {
					t.Errorf("the body of response %d of %d is closed: %t", i, len(s.bodies), isLast)
				}
			}
		})(t)
	}
}

// A Usage settles the estimate when the body ends, and only then. The Cost replaces a body.
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
		"refused":        {"429", `{"usage": {"total_tokens": 30}}`, 100, false, 0},
		"none":           {"200", `{}`, 100, false, 100},
		"cut off":        {"200", `{"usage": {"total_tokens": 30}}`, 100, true, 100},
		"closed at once": {"200", `{"usage":{"total_tokens":8}   }`, 100, true, 8},
		"too much":       {"200", `{"usage": {"total_tokens": 30}}`, 1e9, false, 30},
		"not a number":   {"200", `{}`, -1, false, 1},
		"an upgrade":     {"101", `{"usage": {"total_tokens": 30}}`, 100, false, 100},
	} {
		bubble(name, func(t *testing.T) {
			rule := perSecond("tokens", capacity, 1)
			rule.Unit, rule.Cost, rule.Usage = Tokens, usage.Estimate, usage.Read
			s := newScript(c.header + "\n\n" + c.body)
			client := New(s, Rules(rule))
			taken := func() float64 {
				c, _ := client.rules[0].limiter.Charge("", 1)
				level, _ := c.Level(time.Now())
				return capacity - level.Tokens
			}
			r, asked := request(t.Context(), ""), newBody(fmt.Sprintf(`{"max_tokens": %v}`, c.estimate))
			r.Body = asked
			w, err := client.RoundTrip(r)
			if err != nil || r.Body != asked || s.keys[0] != asked.text {
				t.Fatal(err, s.keys)
			}
			var text strings.Builder
			_, _ = io.CopyN(&text, w.Body, 29)
			want := max(1, min(c.estimate, capacity))
			if got := taken(); c.header == "200" && got != want {
				t.Errorf("%v taken during the response, want %v", got, want)
			}
			if !c.isClosed {
				_, err = io.Copy(&text, w.Body)
			}
			err = errors.Join(err, w.Body.Close(), w.Body.Close())
			isClosed, isAll := s.bodies[0].closed.Load(), text.String() == c.body
			got := taken()
			if err != nil || got != c.want || !isClosed || isAll == c.isClosed {
				t.Errorf("%v taken, want %v; %v, %q, closed %t", got, c.want, err, &text, isClosed)
			}
		})(t)
	}
}

type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// An attempt is sent if the store fails, and a slow store delays no other key.
func TestStores(t *testing.T) {
	down := errors.New("the store is down")
	on := func(calls string, d time.Duration, err error) []Option {
		store := newShared()
		store.before = func(call, key string) error {
			if !strings.Contains(calls, call) || key == "b" {
				return nil
			}
			time.Sleep(d)
			return err
		}
		check := func(_ *http.Request, err error) {
			if !errors.Is(err, down) {
				t.Error(err)
			}
		}
		return []Option{Rules(perSecond("r", 1, 0.01)), WithStore(store), WithHooks(Hooks{Error: check})}
	}
	all := perSecond("all", 1, 0.01)
	all.Key = func(*http.Request) string { return "b" }
	play(t, scene{}, map[string]scene{
		"that fails to take": {opts: on("take", 0, down), answers: []string{"429\nRetry-After: 900"},
			send: "a a", want: "0 0", stats: "{2 2 [{r 0 0s 0 1 1}]}"},
		"that fails to charge and to hold": {answers: []string{"429\nRetry-After: 900"},
			opts: append(on("charge hold", 0, down), WithHooks(Hooks{})),
			send: "a a", want: "0 0", stats: "{2 3 [{r 0 0s 0 1 1}]}"},
		"that fails for one key of a limit": {send: "a a b", want: "0 0 0", order: "a a b",
			opts: append([]Option{Rules(all)}, on("charge", 0, down)...)},
		"that fails when the context has ended": {opts: on("take", 2*time.Second, down),
			send: "a!1 , b", want: "2(context canceled) 4", order: "b"},
		"that answers when the context has ended": {opts: on("take", 2*time.Second, nil),
			send: "a!1 , a", want: "2(context canceled) 4", order: "a"},
		// While a pause moves what waits for one key, another key sends and pauses.
		"that is slow": {opts: on("hold", 40*time.Second, nil), latency: time.Second,
			answers: []string{"429\nRetry-After: 1000", "429\nRetry-After: 1000"},
			send:    "a a a b@5 b@7", want: "0 5 1001 1006 1101", order: "a b a b a"},
	})
}

func TestHooksAndStats(t *testing.T) {
	var events, logged bytes.Buffer
	add := log.New(&events, "", 0).Println
	hooks := Hooks{
		Waits:   func(_ *http.Request, rule string, d time.Duration) { add("waits", rule, d) },
		Held:    func(_ *http.Request, rule string, d time.Duration) { add("held", rule, d) },
		Refused: func(_ *http.Request, rule string, _ *http.Response) { add("refused", rule) },
	}
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	play(t, scene{}, map[string]scene{"": {
		opts:    []Option{Rules(perSecond("api", 1, 1)), WithLogger(logger), WithHooks(hooks)},
		answers: []string{"200", "429\nRetry-After: 10"}, send: "secret secret secret",
		want: "0 1 11", stats: "{3 0 [{api 2 12s 0 1 1}]}",
	}})
	got, want := events.String(), "waits api 1s\nwaits api 2s\nrefused api\nheld api 10s\n"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s := logged.String(); !strings.Contains(s, "rule=api") || strings.Contains(s, "secret") {
		t.Error(s)
	}
}

func TestNewPanics(t *testing.T) {
	noHold := newShared()
	noHold.made["per-host"] = struct{ tb.StoreLimiter }{}
	for name, f := range map[string]func(){
		"capacity": func() { PerHost(0, 1) }, "rate": func() { PerHost(1, 0) },
		"limit":    func() { New(nil, Rules(Rule{Limit: tb.Limit{Capacity: 1}})) },
		"margin":   func() { New(nil, PerHost(5, 1), Margin(5*time.Second)) },
		"negative": func() { New(nil, PerHost(5, 1), Margin(-1)) },
		"store":    func() { New(nil, WithStore(noHold)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); !ok || errors.As(err, new(interface{ RuntimeError() })) {
					t.Error("no panic with an error of the package:", err)
				}
			}()
			f()
		})
	}
}

func TestBase(t *testing.T) {
	base := &still{err: io.EOF}
	client := &http.Client{Transport: New(base)}
	client.CloseIdleConnections()
	_, err := client.Transport.RoundTrip(request(t.Context(), "a"))
	_, lateErr := client.Transport.RoundTrip(request(late{t.Context()}, "a"))
	if !errors.Is(err, io.EOF) || !errors.Is(lateErr, context.DeadlineExceeded) {
		t.Error(err, lateErr)
	}
	if New(nil).base != http.DefaultTransport || !base.isClosed {
		t.Error(base.isClosed)
	}
}

type still struct {
	response *http.Response
	err      error
	isClosed bool
}

func (s *still) RoundTrip(*http.Request) (*http.Response, error) { return s.response, s.err }
func (s *still) CloseIdleConnections()                           { s.isClosed = true }
