package redis

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

func newDegraded(t *testing.T, limit tb.Limit, opts ...Option) *Limiter {
	t.Helper()
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), limit, opts...)
	signal(t, s, syscall.SIGKILL)
	return l
}

func TestPolicyDecidesWithoutAnError(t *testing.T) {
	later := tb.Decision{RetryAfter: probeInterval}
	never := tb.Decision{RetryAfter: tb.Never}
	for _, tt := range []struct {
		policy                 Policy
		three, four, ten, more tb.Decision
	}{
		{Refuse, later, later, later, never},
		{Allow, granted(0), granted(0), granted(0), never},
		{LocalShare(3), granted(0), later, later, never}, // 3 tokens of 10
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			l := newDegraded(t, slow, WithPolicy(tt.policy))
			for i, want := range []tb.Decision{tt.three, tt.four, tt.ten, tt.more} {
				n := []float64{3, 4, 10, 11}[i]
				o, err := l.Decide(t.Context(), "a", n)
				if err != nil || o.Decision != want || o.By != ByPolicy || o.Failure == nil {
					t.Errorf("%v tokens: %+v, %v, want %+v", n, o, err, want)
				}
			}
			s := l.Stats()
			if s.Granted+s.Refused > 0 || s.PolicyGranted+s.PolicyRefused != 4 || s.Policy != tt.policy ||
				(s.PolicyGranted == 0) != (tt.policy == Refuse) || s.Failed[CauseUnreachable] != 4 {
				t.Errorf("Stats: %+v", s)
			}
		})
	}
}

// A client that hangs up does not get past the limit, and no command is sent for it.
func TestCanceledCallIsRefused(t *testing.T) {
	for _, p := range []Policy{Refuse, Allow, LocalShare(1)} {
		l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithPolicy(p))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d, err := l.Allow(ctx, "a")
		s := l.Stats()
		if err != nil || d.Allowed || s.Commands != 0 || s.Failed[CauseCanceled] != 1 {
			t.Errorf("%v: %+v, %v, %+v", p, d, err, s)
		}
	}
}

// A call that takes nothing, or a removal, has no policy.
func TestPolicyDecidesOnlyCallsThatTake(t *testing.T) {
	l := newDegraded(t, slow, WithPolicy(Allow))
	_, err := l.Peek(t.Context(), "a")
	wantCause(t, err, CauseUnreachable)
	_, err = l.Level(t.Context(), "a")
	wantCause(t, err, CauseUnreachable)
	wantCause(t, l.Reset(t.Context(), "a"), CauseUnreachable)
}

// What the server has granted to a process is charged to its share.
func TestOutageStartsNoFreshBurst(t *testing.T) {
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), slow, WithPolicy(LocalShare(2)))
	for i := range 4 {
		wantTake(t, l, "a", 1, granted(9-i))
	}
	signal(t, s, syscall.SIGKILL)
	wantTokens(t, l.share, "a", 1)
	wantTake(t, l, "a", 1, granted(0))
	wantTake(t, l, "b", 5, granted(0))
	_ = l.Reset(t.Context(), "a") // the server is gone
	wantTake(t, l, "a", 5, granted(0))
}

// Also a grant above the share leaves no fresh burst.
func TestLargeGrantsAreChargedToTheShare(t *testing.T) {
	limit := tb.Limit{Capacity: 8, Tokens: 1, Per: 24 * time.Hour}
	l := newLimiter(t, dial(t, redistest.Start(t)), limit, WithPolicy(LocalShare(4)))
	c := newCharge(t, l, "a", 8).(*Charge)
	takeAll(t, c)
	wantTokens(t, l.share, "a", 0)
	_ = c.Settle(7) // is above the share, too
	wantTokens(t, l.share, "a", 0)
}

// Without a server, the failure policy decides charges, alone and in TakeAll. Peek takes nothing
// from a local share, and Cancel gives nothing back.
func TestPolicyDecidesCharges(t *testing.T) {
	for _, tt := range []struct {
		policy  Policy
		granted int // of ten calls for a token from a limit of 10 tokens
	}{{Refuse, 0}, {Allow, 10}, {LocalShare(1), 10}, {LocalShare(2), 5}} {
		for _, keys := range [][]string{{"a"}, {"a", "b"}} {
			l := newLimiter(t, dialed(t, "127.0.0.1:1"), slow, WithPolicy(tt.policy))
			got := 0
			for range 10 {
				var charges []tb.Charge
				want := true
				for _, key := range keys {
					c := newCharge(t, l, key, 1)
					d, err := c.Peek(time.Now())
					if err != nil {
						t.Fatal(err)
					}
					want = want && d.Allowed
					charges = append(charges, c)
				}
				_, ok := takeAll(t, charges...)
				if ok != want {
					t.Errorf("%v, %v: %t, and Peek said %t", tt.policy, keys, ok, want)
				}
				if ok {
					got++
				}
				for _, c := range charges {
					commands := l.Stats().Commands
					c.Cancel() // of what is not in the bucket
					if c.(*Charge).Failure() == nil || l.Stats().Commands != commands {
						t.Errorf("%v, %v: no failure, or a command for Cancel", tt.policy, keys)
					}
				}
			}
			if got != tt.granted {
				t.Errorf("%v, %v: %d granted, want %d", tt.policy, keys, got, tt.granted)
			}
		}
	}
}

// A client that one rule refuses takes nothing from the share of another, which all clients need.
func TestRefusedTakeAllLeavesTheShares(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithoutBatching()}} {
		opts = append(opts, WithPolicy(LocalShare(2)))
		l := newLimiter(t, dialed(t, "127.0.0.1:1"), slow, opts...)
		for range 3 {
			takeAll(t, newCharge(t, l, "total", 1), newCharge(t, l, "client", 3))
		}
		wantTokens(t, l.share, "total", 4)
		wantTokens(t, l.share, "client", 2)
	}
}

// What TakeAll takes from the server is charged to the local shares too, and what is given back is
// theirs again.
func TestTakeAllWarmsTheShares(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithPolicy(LocalShare(2)))
	a, b := newCharge(t, l, "a", 4), newCharge(t, l, "b", 4).(*Charge)
	if _, ok := takeAll(t, a, b); !ok {
		t.Fatal("two full buckets refuse")
	}
	wantTokens(t, l.share, "a", 1)
	wantTokens(t, l.share, "b", 1)
	a.Cancel()
	_ = b.Settle(2)
	wantTokens(t, l.share, "a", 5)
	wantTokens(t, l.share, "b", 3)
}
