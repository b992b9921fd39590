package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestsAreServedAtTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, delaying("r", "[]", 10, `"match": {"header:k": "1"}`))
		for range 10 {
			q.get("burst", "K: 1")
		}
		var last *httptest.ResponseRecorder
		for i := range 6 {
			last = q.get(sprint(i), "K: 1")
		}
		q.counted(0, 10, 1, 0, 5, 0)                               // the sixth would wait for 600 ms
		wants(t, last, "Retry-After: 2", "RateLimit-Remaining: 0") // 1, and the jitter of /5
		if last.Code != http.StatusTooManyRequests {
			t.Errorf("status %d", last.Code)
		}
		burst := slices.Repeat([]string{"0 served burst"}, 10)
		q.saw(append(burst, "0 429 5", "100 served 0", "200 served 1", "300 served 2",
			"400 served 3", "500 served 4")...)
		q.counted(0, 15, 1, 5, 0, 0)
		if got := q.Stats()[0].DelaySeconds; got != 1.5 {
			t.Errorf("%v seconds of delay, want 1.5", got)
		}
	})
}

// Retry-After is the time until the same request would be made to wait, and not until its tokens
// are there, which takes 20 s.
func TestRetryAfterOfARuleThatDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, `{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "19s",
			"algorithm_config": {"rps": 0.1, "burst": 1}}`)
		q.get("a")
		q.get("b")
		wants(t, q.get("c"), "Retry-After: 1")
		q.saw("0 served a", "0 429 c", "10000 served b")
	})
}

// The longest delay of all rules counts. Rules that refuse are charged at the arrival.
func TestRequestWaitsForTheSlowestRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var hooked []string
		hook := func(name string) func(*http.Request, Event) {
			return func(_ *http.Request, e Event) {
				mu.Lock()
				defer mu.Unlock()
				hooked = append(hooked, sprint(name, " ", e.Rule, " ", e.Delay))
			}
		}
		q := newQueue(t, jsonRules("", delaying("fast", `["header:k"]`, 2, ""),
			`{"name": "slow", "limit_keys": ["ip:address"], "on_limit": "delay", "max_delay": "2s",
				"algorithm_config": {"rps": 1, "burst": 2}}`,
			delaying("last", `["header:k", "ip:address"]`, 3, ""), jsonRule("plain", "[]", 5, "")),
			WithContext(), WithHooks(Hooks{Delayed: hook("delayed"), Granted: hook("granted"),
				Refused: hook("refused")}))
		q.handler = q.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			d, _ := FromContext(r.Context())
			q.note(sprintf("served %s, by %s %v", r.URL.Path[1:], d.Rule, d.Delay))
		}))
		q.get("a", "K: 1")
		q.get("b", "K: 1")
		w := q.get("c", "K: 1") // 1 s
		q.get("d", "K: 1")      // 2 s
		q.get("e", "K: 1")      // refused by slow, so not charged to plain
		q.counted(0, 2, 0, 0, 2, 0)
		q.counted(1, 2, 1, 0, 2, 0)
		q.counted(3, 2, 0, 0, 0, 0)
		q.saw("0 served a, by fast 0s", "0 served b, by fast 0s", "0 429 e",
			"1000 served c, by slow 1s", "2000 served d, by slow 2s")
		q.counted(1, 4, 1, 2, 0, 0)
		q.counted(3, 4, 0, 0, 0, 0)
		// The fields of c are as of its slot: another token comes two seconds later, after the token
		// of d.
		wants(t, w, "RateLimit-Limit: 2", "RateLimit-Remaining: 0", "RateLimit-Reset: 2",
			`RateLimit: "fast";r=0;t=1, "slow";r=0;t=2, "last";r=0;t=1, "plain";r=2;t=2`,
			"Retry-After: ")
		want := []string{
			"granted fast 0s", "granted fast 0s", "delayed slow 1s", "delayed slow 2s",
			"refused slow 0s", "granted slow 1s", "granted slow 2s",
		}
		if !slices.Equal(hooked, want) {
			t.Errorf("hooks: %q, want %q", hooked, want)
		}
	})
}

func TestMostRequestsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused time.Duration
		delayed := 0
		q := newQueue(t, jsonRules(`"max_waiting": 2`, delaying("a", `["header:a"]`, 10, ""),
			delaying("b", `["header:b"]`, 10, "")), WithHooks(Hooks{
			Delayed: func(*http.Request, Event) { delayed++ },
			Refused: func(_ *http.Request, e Event) { refused = e.RetryAfter },
		}))
		for range 10 {
			q.get("burst", "A: 1", "B: 1")
		}
		q.get("a1", "A: 1")
		q.get("b1", "B: 1")
		q.get("a2", "A: 1")
		if refused != 200*time.Millisecond { // its token comes after the token of a1
			t.Errorf("RetryAfter %v, want 200ms", refused)
		}
		q.get("other", "A: 2")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		q.get("a3", "A: 1")
		burst := slices.Repeat([]string{"0 served burst"}, 10)
		q.saw(append(burst, "0 429 a2", "0 served other", "100 served a1", "100 served b1",
			"200 served a3")...)
		q.counted(0, 13, 1, 2, 0, 0)
		if delayed != 3 { // a2 has not taken tokens
			t.Errorf("%d requests began to wait, want 3", delayed)
		}
	})
}

// A request for which there is no place to wait takes no place, and pays nothing.
func TestNoPlaceCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *queue
		q = newQueue(t, jsonRules(`"max_waiting": 1`, delaying("r", "[]", 10, "")), WithHooks(Hooks{
			Delayed: func(*http.Request, Event) { q.waits.count.Add(1) }, // by another request
		}))
		for range 10 {
			q.get("burst")
		}
		if w := q.get("late"); w.Code != http.StatusTooManyRequests {
			t.Errorf("status %d", w.Code)
		}
		if n := q.waits.count.Add(-1); n != 0 {
			t.Errorf("%d requests wait", n)
		}
		if tokens := q.Explain(request())[0].Level.Tokens; tokens != 0 {
			t.Errorf("%v tokens, want none and no debt", tokens)
		}
	})
}

// A client that hangs up gives back what its request has taken, from all rules. Its request never
// reaches the handler, and no function of the application answers it.
func TestHangUpGivesTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, jsonRules("", delaying("slow", `["header:k"]`, 10, ""),
			jsonRule("plain", "[]", 100, ""), jsonRule("trial", "[]", 100, `"mode": "shadow"`)),
			WithRefusal(func(_ http.ResponseWriter, _ *http.Request, r *Refusal) { t.Errorf("%+v", r) }))
		for range 10 {
			q.get("burst", "K: 1")
		}
		ctx, cancel := context.WithCancel(t.Context())
		q.get("first", "K: 1")
		w := q.send(ctx, "gone", "K: 1")
		time.Sleep(50 * time.Millisecond)
		q.counted(0, 10, 0, 0, 2, 0)
		cancel()
		synctest.Wait()
		q.counted(0, 10, 0, 0, 1, 1)
		if w.Code != statusClientGone || w.Body.Len() > 0 {
			t.Errorf("status %d, %s", w.Code, w.Body)
		}
		q.get("second", "K: 1") // has the slot that was given back
		burst := slices.Repeat([]string{"0 served burst"}, 10)
		q.saw(append(burst, "50 499 gone", "100 served first", "200 served second")...)
		q.counted(0, 12, 0, 2, 0, 1)
		q.counted(1, 12, 0, 0, 0, 0)
		if n := q.Stats()[2].ShadowGranted; n != 12 {
			t.Errorf("the shadow rule has %d requests, want 12", n)
		}
		if got := q.Explain(request("K: 1"))[1].Remaining; got != 100-12-1 {
			t.Errorf("plain has %d tokens left, want 87", got)
		}
	})
}

// Nothing is given back in front of a request that waits: the next one would share its slot. It
// makes no difference where the cost is, nor that a reload may have moved the bucket.
func TestHangUpBeforeARequestThatWaits(t *testing.T) {
	for _, cost := range []string{`"fixed_cost": 1`, `"cost_source": "response:bytes"`} {
		for _, reload := range []bool{false, true} {
			for _, opts := range [][]Option{nil, {WithStore(referenceStore{t: t})}} {
				synctest.Test(t, func(t *testing.T) {
					rule := sprintf(`{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "9s",
						"algorithm_config": {"rps": 1, "burst": 1, "min_cost": 1, %s}}`, cost)
					q := newQueue(t, rule, opts...)
					ctx, cancel := context.WithCancel(t.Context())
					q.get("first")
					q.send(ctx, "gone")
					q.get("second")
					if reload {
						if err := q.SetPolicy(mustParse(t, rule)); err != nil {
							t.Error(err)
						}
					}
					cancel()
					synctest.Wait()
					q.get("third")
					q.saw("0 served first", "0 499 gone", "2000 served second", "3000 served third")
				})
			}
		}
	}
}

// A request waits no longer than its own context, and is refused at once if its slot is later. So
// between StopWaiting and its end.
func TestDeadlineOfTheContext(t *testing.T) {
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, delaying("r", "[]", 10, ""))
			if stops {
				q.StopWaiting(q.start.Add(400 * time.Millisecond))
			}
			for range 10 {
				q.get("burst")
			}
			for path, timeout := range map[string]time.Duration{"short": 99, "late": -1000, "long": 101} {
				ctx, cancel := context.WithTimeout(t.Context(), timeout*time.Millisecond)
				defer cancel()
				q.send(ctx, path)
			}
			burst := slices.Repeat([]string{"0 served burst"}, 10)
			q.saw(append(burst, "0 429 late", "0 429 short", "100 served long")...)
		})
	}
}

// After StopWaiting no request waits beyond its end, and the requests that wait until then are
// served.
func TestStopWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delayed := 0
		q := newQueue(t, delaying("r", "[]", 10, ""), WithHooks(Hooks{
			Delayed: func(*http.Request, Event) { delayed++ },
		}))
		for range 10 {
			q.get("burst")
		}
		for i := range 4 {
			q.get(sprint(i))
		}
		time.Sleep(50 * time.Millisecond)
		q.StopWaiting(time.Now().Add(200 * time.Millisecond)) // at 250 ms
		q.StopWaiting(time.Now().Add(time.Hour))
		synctest.Wait()
		q.counted(0, 10, 2, 0, 2, 0)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if q.get("new"); delayed != 4 { // its slot would be too late
			t.Errorf("%d requests began to wait, want 4", delayed)
		}
		burst := slices.Repeat([]string{"0 served burst"}, 10)
		q.saw(append(burst, "50 429 2", "50 429 3", "100 served 0", "150 429 new",
			"200 served 1")...)
	})
}

// A request that must not wait any more is served if its bucket has got tokens meanwhile. Each rule
// is charged once.
func TestStopWaitingServesIfThereAreTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, jsonRules("", delaying("r", "[]", 10, ""), jsonRule("plain", "[]", 20, "")))
		for range 11 {
			q.get("x")
		}
		q.policy.Load().rules[0].table.Reset("")
		q.StopWaiting(time.Now())
		q.saw(slices.Repeat([]string{"0 served x"}, 11)...)
		q.counted(0, 11, 0, 0, 0, 0)
		if e := q.Explain(request()); e[0].Remaining != 8 || e[1].Remaining != 8 {
			t.Errorf("%+v", e)
		}
	})
}

// A shadow rule decides as if it delayed, and the request does not wait.
func TestShadowRuleNeverDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delays, explained []time.Duration
		q := newQueue(t, jsonRules("", jsonRule("r", "[]", 100, ""),
			delaying("trial", "[]", 10, `"mode": "shadow"`)), WithHooks(Hooks{
			Shadow: func(_ *http.Request, e Event) { delays = append(delays, e.Delay) },
		}))
		for range 16 {
			explained = append(explained, q.Explain(request())[1].Delay)
			if w := q.get("x"); w.Code != http.StatusOK || w.Header().Get("RateLimit-Limit") != "100" {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		}
		if at := time.Since(q.start); at > 0 {
			t.Errorf("a request waited for %v", at)
		}
		s := q.Stats()[1]
		if s.ShadowGranted != 15 || s.ShadowRefused != 1 || s.Delayed != 5 || s.DelaySeconds != 1.5 {
			t.Errorf("%+v", s)
		}
		ms := time.Millisecond
		want := append(make([]time.Duration, 10), 100*ms, 200*ms, 300*ms, 400*ms, 500*ms, 0)
		if !slices.Equal(delays, want) || !slices.Equal(explained, want) {
			t.Errorf("delays %v, and Explain %v, want %v", delays, explained, want)
		}
		q.pending.Wait()
	})
}

// Explain returns the delay that the request would have, and takes nothing.
func TestExplainDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, delaying("r", "[]", 10, ""))
		explain := func() Explanation { return q.Explain(request())[0] }
		for range 12 {
			q.get("x")
		}
		if e := explain(); !e.Allowed || e.Delay != 300*time.Millisecond || e.Level.Tokens != -2 ||
			e.MaxDelay != 500*time.Millisecond {
			t.Errorf("%+v", e)
		}
		for range 3 {
			q.get("x")
		}
		if e := explain(); e.Allowed || e.Delay != 0 || e.RetryAfter != 100*time.Millisecond {
			t.Errorf("%+v", e)
		}
		q.pending.Wait()
	})
}

// delaying returns a rule of 10 tokens a second with this burst that delays by up to 500 ms.
func delaying(name, keys string, burst int, more string) string {
	if more != "" {
		more = ", " + more
	}
	return sprintf(`{"name": %q, "limit_keys": %s, "algorithm_config": {"rps": 10, "burst": %d},
		"on_limit": "delay", "max_delay": "500ms"%s}`, name, keys, burst, more)
}

// queue is a server whose limiter has the clock of a synctest bubble.
type queue struct {
	*Limiter
	t       *testing.T
	handler http.Handler
	start   time.Time
	pending sync.WaitGroup

	mu   sync.Mutex
	seen []string // when each request was served or answered, in ms, and what happened
}

func newQueue(t *testing.T, policy string, opts ...Option) *queue {
	t.Helper()
	q := &queue{t: t, start: time.Now()}
	q.Limiter = mustNew(t, policy, append(opts, steady())...)
	q.handler = q.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		q.note("served " + r.URL.Path[1:])
	}))
	return q
}

func (q *queue) note(what string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seen = append(q.seen, sprintf("%d %s", time.Since(q.start).Milliseconds(), what))
}

// send sends a request for a path, and returns when it is served, answered or waits.
func (q *queue) send(ctx context.Context, path string, lines ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := request(append([]string{"/" + path}, lines...)...).WithContext(ctx)
	q.pending.Go(func() {
		q.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			q.note(sprintf("%d %s", w.Code, path))
		}
	})
	synctest.Wait()
	return w
}

func (q *queue) get(path string, lines ...string) *httptest.ResponseRecorder {
	return q.send(context.Background(), path, lines...)
}

// saw waits for all requests, and wants these events. Their order does not matter, because each has
// its time.
func (q *queue) saw(want ...string) {
	q.t.Helper()
	q.pending.Wait()
	slices.Sort(q.seen)
	slices.Sort(want)
	if !slices.Equal(q.seen, want) {
		q.t.Errorf("got %q, want %q", q.seen, want)
	}
	if n := q.waits.count.Load(); n != 0 {
		q.t.Errorf("%d requests wait", n)
	}
}

// counted wants these counts of a rule: granted, refused, delayed, waiting and hung up.
func (q *queue) counted(rule int, want ...int) {
	q.t.Helper()
	s := q.Stats()[rule]
	got := []int{int(s.Granted), int(s.Refused), int(s.Delayed), s.Waiting, int(s.HungUp)}
	if !slices.Equal(got, want) {
		q.t.Errorf("%s: granted, refused, delayed, waiting, hung up: %d, want %d", s.Rule, got, want)
	}
}
