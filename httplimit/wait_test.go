package httplimit

import (
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
