package redis

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Each call of Reserve, Settle and Cancel is one command, and shares one with others.
func TestCommandsOfReservations(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	commands := func(f func()) uint64 {
		before := l.Stats().Commands
		f()
		return l.Stats().Commands - before
	}
	level := func(want float64) {
		t.Helper()
		if v, err := l.Level(t.Context(), "a"); err != nil || v.Tokens < want || v.Tokens > want+0.01 {
			t.Errorf("%+v, %v, want %v tokens", v, err, want)
		}
	}
	var r tb.Reservation
	for i, f := range []func(){
		func() { r, _ = l.Reserve(t.Context(), "a", 6) },
		func() { _ = r.Settle(2) }, // 8 tokens
		func() { r, _ = l.Reserve(t.Context(), "a", 3) },
		func() { _ = r.Settle(20) }, // −10 tokens, and 2 are unpaid
		func() { r, _ = l.Reserve(t.Context(), "c", 6) },
		func() { _ = l.Reset(t.Context(), "c") },
		func() { _ = r.Settle(2) }, // there is nothing to give back
		func() { r, _ = l.Reserve(t.Context(), "b", 10) },
		func() { r, _ = l.Reserve(t.Context(), "b", 5) },
		func() { r.Cancel() },
	} {
		if n := commands(f); n != 1 {
			t.Errorf("call %d: %d commands", i, n)
		}
	}
	if n := commands(func() { r.Cancel(); _ = r.Settle(1) }); n != 0 {
		t.Errorf("%d commands of a reservation that has ended", n)
	}
	level(-10)
	if s := l.Stats(); s.UnpaidTokens < 1.9 || s.UnpaidTokens > 2 || s.Cancellations != 1 {
		t.Errorf("Stats: %+v", s)
	}
	if v, err := l.Level(t.Context(), "b"); err != nil || v.Tokens < 0 || v.Tokens > 0.01 {
		t.Errorf("after the cancellation: %+v, %v", v, err)
	}
	// An actual cost has no bound. The debt is a capacity at most.
	if r, _ = l.Reserve(t.Context(), "d", 4); !r.Allowed {
		t.Fatal(r)
	}
	if err := r.Settle(1e12); err != nil {
		t.Error(err)
	}
	if v, err := l.Level(t.Context(), "d"); err != nil || v.Tokens < -10 || v.Tokens > -9.99 {
		t.Errorf("after a large settlement: %+v, %v", v, err)
	}
	// Local refusals end with a settlement.
	c := newLimiter(t, l.client, slow, WithPrefix("c"))
	if r, _ = c.Reserve(t.Context(), "a", 10); !r.Allowed {
		t.Fatal(r)
	}
	if d, _ := c.Allow(t.Context(), "a"); d.Allowed {
		t.Errorf("%+v", d)
	}
	if err := r.Settle(4); err != nil {
		t.Error(err)
	}
	if d, err := c.AllowN(t.Context(), "a", 6); err != nil || d != granted(0) {
		t.Errorf("after the settlement: %+v, %v", d, err)
	}
}

func TestWait(t *testing.T) {
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), tb.Limit{Capacity: 2, Tokens: 1, Per: 20 * time.Millisecond})
	start := time.Now()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := l.Wait(t.Context(), "a", 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if d := time.Since(start); d < 79*time.Millisecond { // 4 tokens after the first two
		t.Errorf("6 tokens after %v", d)
	}
	slowly := newLimiter(t, dial(t, s), slow, WithPrefix("slow:"))
	if err := slowly.Wait(t.Context(), "a", 10); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var refused *tb.WaitError
	if err := slowly.Wait(ctx, "a", 1); !errors.As(err, &refused) || !refused.Deadline ||
		refused.Wait < 23*time.Hour {
		t.Errorf("a slot beyond the deadline: %v", err)
	}
	if err := slowly.Wait(ctx, "a", 11); !errors.As(err, &refused) || refused.Deadline ||
		refused.Wait != tb.Never {
		t.Errorf("a cost above the capacity: %v", err)
	}
	if err := slowly.Wait(late{t.Context()}, "b", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if v, err := slowly.Level(t.Context(), "b"); err != nil || v.Tokens != 10 {
		t.Errorf("%+v, %v, want 10 tokens", v, err)
	}
	// A caller that leaves gives its tokens back.
	ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- slowly.Wait(ctx, "a", 5) }()
	for slowly.Stats().Reservations < 2 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that leaves: %v", err)
	}
	if v, err := slowly.Level(t.Context(), "a"); err != nil || v.Tokens < 0 {
		t.Errorf("%+v, %v, want no debt", v, err)
	}
	if err := slowly.Wait(t.Context(), "a", 0); !errors.Is(err, tb.ErrInvalidCost) {
		t.Errorf("no cost: %v", err)
	}
}

// late is a context whose deadline has passed, and whose timer has not fired.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

// Without the server, the policy decides reservations too.
func TestReservationsWithoutTheServer(t *testing.T) {
	s := redistest.Start(t)
	var all []*Limiter
	for i, p := range []Policy{Refuse, Allow, LocalShare(2)} {
		all = append(all, newLimiter(t, dial(t, s), slow, WithPolicy(p), WithPrefix(strconv.Itoa(i))))
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, true} {
		r, err := all[i].Reserve(t.Context(), "a", 5)
		if err != nil || r.Allowed != want || r.Delay() != 0 {
			t.Errorf("%v: %+v, %v", all[i].policy, r, err)
		}
		if err := r.Settle(1); err != nil {
			t.Error(err)
		}
		err = all[i].Wait(t.Context(), "b", 5)
		if e := new(Error); want && err != nil || !want && !errors.As(err, &e) {
			t.Errorf("%v: Wait: %v", all[i].policy, err)
		}
	}
}

// A new limit converts buckets. Statistics and the breaker go on, and what was seen under the old
// limit refuses no call.
func TestSetLimit(t *testing.T) {
	c := dial(t, redistest.Start(t))
	large := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}
	l := newLimiter(t, c, large, WithPolicy(LocalShare(2)))
	if d, err := l.AllowN(t.Context(), "a", 998); err != nil || d != granted(2) {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := l.AllowN(t.Context(), "a", 900); err != nil || d.Allowed {
		t.Errorf("900 of 2 tokens: %+v, %v", d, err)
	}
	small := tb.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}
	if err := l.SetLimit(small); err != nil || l.Limit() != small || l.share.Limit().Capacity != 5 {
		t.Fatalf("%v, %+v", err, l.Limit())
	}
	if d, err := l.AllowN(t.Context(), "a", 2); err != nil || d != granted(0) {
		t.Errorf("2 of 2 tokens after a lower limit: %+v, %v", d, err)
	}
	d, err := l.Allow(t.Context(), "a")
	if err != nil || d.Allowed || d.RetryAfter > 6*time.Minute || d.RetryAfter < 5*time.Minute {
		t.Errorf("after a lower limit: %+v, %v, want a wait of 6 minutes", d, err)
	}
	if s := l.Stats(); s.Granted != 2 {
		t.Errorf("Stats: %+v", s)
	}
	if err := l.SetLimit(tb.Limit{}); err == nil || l.Limit() != small {
		t.Errorf("an impossible limit: %v, %+v", err, l.Limit())
	}
	if err := l.SetLimit(perSecond(1, 1)); err == nil || l.Limit() != small {
		t.Errorf("a limit without shares: %v, %+v", err, l.Limit())
	}
}
