package redis

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// newSpent returns a limiter whose lease on the key "a" is spent, so that the next call renews it,
// and another client of its server.
func newSpent(t *testing.T) (l *Limiter, operator rueidis.Client) {
	t.Helper()
	s := redistest.Start(t)
	l = newLimiter(t, dial(t, s), hot, WithLease(time.Minute))
	for range 100 {
		allow1(t, l)
	}
	for !latest(l).isEmpty() {
		allow1(t, l)
	}
	return l, dial(t, s)
}

// latest returns the latest claim on the key "a".
func latest(l *Limiter) *claim {
	x, _ := l.leases.keys.Load("a")
	return x.claim.Load()
}

// renewing makes a call that renews the lease of a paused server. Its command is under way when
// renewing returns.
func renewing(ctx context.Context, l *Limiter) <-chan outcome {
	c := crowd{l: l, key: "a"}
	return c.send(ctx, 1)
}

// A caller that hangs up does not cost the tokens that its command takes for later calls.
func TestLeaseStaysWhenItsCallerLeaves(t *testing.T) {
	l, operator := newSpent(t)
	resume := pause(t, operator)
	ctx, cancel := context.WithCancel(t.Context())
	left := renewing(ctx, l)
	cancel()
	wantCause(t, (<-left).err, CauseCanceled)
	resume()
	s := l.Stats()
	for range 50 {
		allow1(t, l)
	}
	if n := l.Stats(); n.Commands != s.Commands || n.Leased != s.Leased+50 {
		t.Errorf("%d commands for 50 calls, and %d were leased", n.Commands-s.Commands, n.Leased-s.Leased)
	}
	for l.Stats().Abandoned == 0 { // its own token is taken
		runtime.Gosched()
	}
}

func TestCanceledCallDoesNotRenewALease(t *testing.T) {
	l, _ := newSpent(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCause(t, failure(ctx, t, l, "a"), CauseCanceled)
	x, _ := l.leases.keys.Load("a")
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pending != nil || !x.claim.Load().isEmpty() {
		t.Error("a canceled call renewed the lease")
	}
}

func TestCloseGivesBackALeaseThatIsUnderWay(t *testing.T) {
	l, operator := newSpent(t)
	resume := pause(t, operator)
	call := renewing(t.Context(), l)
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	for gone := false; !gone; {
		x, _ := l.leases.keys.Load("a")
		x.mu.Lock()
		gone = x.gone
		x.mu.Unlock()
		runtime.Gosched()
	}
	resume()
	if o := <-call; o.err != nil || !o.Allowed {
		t.Errorf("the call: %+v", o)
	}
	<-closed
	if s := l.Stats(); s.ReturnedTokens == 0 || s.ClaimedTokens != float64(s.Leased)+s.ReturnedTokens {
		t.Errorf("%v tokens claimed, %d spent, %v returned", s.ClaimedTokens, s.Leased, s.ReturnedTokens)
	}
}

// A lease that was taken from the bucket before a reset would add to the bucket after it. Its reply
// may come before the reset has ended, or after it.
func TestResetDropsALeaseThatIsUnderWay(t *testing.T) {
	l, _ := newSpent(t)
	for _, late := range []bool{false, true} {
		allow1(t, l)
		x, _ := l.leases.keys.Load("a")
		old, c := latest(l), &claim{end: l.leases.now() + l.leases.life, size: 1}
		c.left.Store(l.layout.Load().scale)
		x.pending = make(chan struct{})
		if !late {
			x.renewed(old, c, nil)
		}
		if err := l.Reset(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if late {
			x.renewed(old, c, nil)
		}
		if got := latest(l); !got.isEmpty() {
			t.Errorf("late %t: %d units of a lease from before the reset", late, got.left.Load())
		}
	}
}

// After an error, the lease takes nothing ahead until it has grown again: its tokens may be lost.
// What it gives back then is not spent: the server may have it.
func TestLeaseGrowsAnewAfterAnError(t *testing.T) {
	l, operator := newSpent(t)
	allow1(t, l)
	do(t, operator, "CONFIG", "SET", "maxmemory", "1")
	o, _ := l.Decide(t.Context(), "a", float64(latest(l).left.Load()/l.layout.Load().scale+1))
	if wantCause(t, o.Failure, CauseOutOfMemory); !latest(l).isEmpty() {
		t.Errorf("%d units of the lease are left", latest(l).left.Load())
	}
	do(t, operator, "CONFIG", "SET", "maxmemory", "0")
	claimed := l.Stats().ClaimedTokens
	allow1(t, l)
	if n := l.Stats().ClaimedTokens - claimed; n > 1 {
		t.Errorf("%v tokens were claimed after an error", n)
	}
}

// The tokens that a renewal gives back belong to all processes from then on.
func TestTokensOnTheirWayBackAreNotSpent(t *testing.T) {
	l, operator := newSpent(t)
	allow1(t, l)
	s, m := l.Stats(), l.layout.Load()
	left := latest(l).left.Load() / m.scale
	resume := pause(t, operator)
	c := crowd{l: l, key: "a"}
	more := c.send(t.Context(), int(left)+1)
	if latest(l).spend(m, m.scale, l.leases.now(), new(result)) {
		t.Errorf("one of %d tokens was spent although they are given back", left)
	}
	resume()
	if o := <-more; o.err != nil || !o.Allowed || left == 0 {
		t.Errorf("more than the %d tokens of the lease: %+v", left, o)
	}
	if n := l.Stats().ReturnedTokens - s.ReturnedTokens; n != float64(left) {
		t.Errorf("%v tokens were given back, want %d", n, left)
	}
}

func TestOpenBreakerKeepsWhatALeaseHas(t *testing.T) {
	l, _ := newSpent(t)
	allow1(t, l)
	left := latest(l).left.Load()
	open(l)
	commands := l.Stats().Commands
	o, err := l.Decide(t.Context(), "a", float64(left/l.layout.Load().scale)+1)
	if err != nil || o.By != ByPolicy || o.Failure.Cause != CauseOpen {
		t.Errorf("more than the lease has: %+v, %v", o, err)
	}
	if n := latest(l).left.Load(); n != left || left == 0 || l.Stats().Commands != commands {
		t.Errorf("%d units are left, want %d; %d commands", n, left, l.Stats().Commands-commands)
	}
}

// A bucket that is drained refuses without a command, with leases too.
func TestLeasedKeyIsRefusedLocally(t *testing.T) {
	limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Minute}
	l := newLimiter(t, dial(t, redistest.Start(t)), limit, WithLease(2*time.Minute),
		WithMaxDenial(patient))
	granted := 0
	for range 3000 {
		d, err := l.Allow(t.Context(), "a")
		if d.Allowed {
			granted++
		}
		if err != nil || d.Remaining != 998-granted {
			t.Fatalf("%+v, %v after %d grants", d, err, granted)
		}
	}
	s := l.Stats()
	if granted != 998 || s.RefusedLocally < 2000 || s.Commands > 30 || s.Abandoned > 0 {
		t.Errorf("%d granted, want 998; Stats: %+v", granted, s)
	}
}

// The capacity less what the rate supplies in h is a whole number of tokens. So the bucket can pay
// every cost up to it, and has a next token until it is full.
func TestLeasedCapacityIsWhole(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 25, Per: time.Hour} // 2.5 in 6 minutes
	l := newLimiter(t, dial(t, redistest.Start(t)), limit, WithLease(6*time.Minute))
	if d, err := l.AllowN(t.Context(), "a", 7.1); err != nil || d.RetryAfter != tb.Never {
		t.Errorf("7.1 of 7 tokens: %+v, %v", d, err)
	}
	if d, err := l.AllowN(t.Context(), "a", 0.1); err != nil || !d.Allowed {
		t.Errorf("0.1 tokens: %+v, %v", d, err)
	}
	v, err := l.Level(t.Context(), "a")
	if err != nil || v.NextToken != v.Full || v.Tokens > 7 || v.Tokens < 6.9 {
		t.Errorf("%+v, %v", v, err)
	}
}
