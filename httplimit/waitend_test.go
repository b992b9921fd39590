package httplimit

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A client that hangs up gives back what its request has taken, from all rules, and its request
// never reaches the handler.
func TestHangUpGivesTheSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, jsonRules("", delaying("slow", `["header:k"]`, 10, ""),
			jsonRule("plain", "[]", 100, ""), jsonRule("trial", "[]", 100, `"mode": "shadow"`)))
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

// A request waits no longer than its own context, and is refused at once if its slot is later.
func TestDeadlineOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, delaying("r", "[]", 10, ""))
		for range 10 {
			q.get("burst")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 99*time.Millisecond)
		defer cancel()
		q.send(ctx, "short")
		ctx, cancel = context.WithTimeout(t.Context(), 101*time.Millisecond)
		defer cancel()
		q.send(ctx, "long")
		ctx, cancel = context.WithDeadline(t.Context(), q.start.Add(-time.Second))
		defer cancel()
		q.send(ctx, "late")
		burst := slices.Repeat([]string{"0 served burst"}, 10)
		q.saw(append(burst, "0 429 late", "0 429 short", "100 served long")...)
	})
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

// Between StopWaiting and its end, a request still waits no longer than its own context.
func TestDeadlineBeforeTheEndOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, delaying("r", "[]", 10, ""))
		for range 10 {
			q.get("burst")
		}
		q.StopWaiting(time.Now().Add(400 * time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		q.send(ctx, "short")
		q.saw(append(slices.Repeat([]string{"0 served burst"}, 10), "0 429 short")...)
	})
}
