package redis

import (
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

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
					c, err := l.Charge(key, 1)
					if err != nil {
						t.Fatal(err)
					}
					d, err := c.Peek(time.Now())
					if err != nil {
						t.Fatal(err)
					}
					want = want && d.Allowed
					charges = append(charges, c)
				}
				_, ok, err := TakeAll(t.Context(), time.Now(), charges, nil)
				if err != nil || ok != want {
					t.Errorf("%v, %v: %t, %v, and Peek said %t", tt.policy, keys, ok, err, want)
				}
				if ok {
					got++
				}
				for _, c := range charges {
					if c.(*Charge).Failure() == nil {
						t.Errorf("%v, %v: no failure", tt.policy, keys)
					}
					c.Cancel()
				}
			}
			if got != tt.granted {
				t.Errorf("%v, %v: %d granted, want %d", tt.policy, keys, got, tt.granted)
			}
		}
	}
}

// What TakeAll takes from the server is charged to the local shares too.
func TestTakeAllWarmsTheShares(t *testing.T) {
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), slow, WithPolicy(LocalShare(2)))
	var charges []tb.Charge
	for _, key := range []string{"a", "b"} {
		c, err := l.Charge(key, 4)
		if err != nil {
			t.Fatal(err)
		}
		charges = append(charges, c)
	}
	_, ok, err := TakeAll(t.Context(), time.Now(), charges, nil)
	if err != nil || !ok {
		t.Fatalf("%t, %v", ok, err)
	}
	for _, c := range charges {
		if err := c.(*Charge).Failure(); err != nil {
			t.Error(err)
		}
	}
	for _, key := range []string{"a", "b"} {
		if v, err := l.share.Level(t.Context(), key); err != nil || int(v.Tokens) != 1 {
			t.Errorf("the share of %s has %+v, %v, want 1 token", key, v, err)
		}
	}
}

// What the failure policy has granted is not in the bucket, so that Cancel asks no server.
func TestCancelOfWhatThePolicyGranted(t *testing.T) {
	l := newDegraded(t, slow, WithPolicy(Allow))
	c := newCharge(t, l, "a", 1)
	if d, err := c.Take(time.Now()); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	before := l.Stats().Commands
	if c.Cancel(); l.Stats().Commands != before {
		t.Error("Cancel has sent a command")
	}
}
