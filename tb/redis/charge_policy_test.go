package redis

import (
	"errors"
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

// The failure policy decides calls, but it does not know how full a bucket is.
func TestLevelOfAChargeWithoutTheServer(t *testing.T) {
	for _, policy := range []Policy{Refuse, Allow, Fail, LocalShare(2)} {
		s := redistest.Start(t)
		l := newLimiter(t, dial(t, s), slow, WithPolicy(policy))
		peeked := newCharge(t, l, "a", 1).(*Charge)
		if _, err := peeked.Peek(time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := s.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_, _ = peeked.Peek(time.Now())
		taken := newCharge(t, l, "a", 1).(*Charge)
		_, _ = taken.Take(time.Now())
		for name, c := range map[string]*Charge{
			"new": newCharge(t, l, "a", 1).(*Charge), "peeked": peeked, "taken": taken,
		} {
			if v, err := c.Level(time.Now()); !errors.As(err, new(*Error)) {
				t.Errorf("%v, %s: %+v, %v, want an *Error", policy, name, v, err)
			}
		}
	}
}

// A charge that is taken again has nothing left of the time before, also if it is refused without a
// command.
func TestChargeIsTakenAgain(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	var charges []tb.Charge
	for _, key := range []string{"a", "b"} {
		if _, err := l.AllowN(t.Context(), key, 10); err != nil {
			t.Fatal(err)
		}
		c := newCharge(t, l, key, 1).(*Charge)
		c.MayWait(time.Hour * 36)
		charges = append(charges, c)
	}
	for i, takeAll := range []func() (bool, error){
		func() (bool, error) {
			_, ok, err := TakeAll(t.Context(), time.Now(), charges, nil)
			return ok, err
		},
		func() (bool, error) {
			charges[0].(*Charge).MayWait(0)
			_, ok, err := new(Store).TakeAll(t.Context(), time.Now(), charges[:1], nil)
			return ok, err
		},
	} {
		for _, c := range charges {
			c.(*Charge).delay, c.(*Charge).failure = time.Hour, &Error{}
		}
		for _, want := range []bool{i == 0, false} {
			ok, err := takeAll()
			c := charges[0].(*Charge)
			if err != nil || ok != want || (c.Delay() > 0) != want || c.Failure() != nil {
				t.Errorf("%d: %t, %v, delay %v, failure %v", i, ok, err, c.Delay(), c.Failure())
			}
		}
	}
}

// A level that is asked for by another limit leaves the bucket as it is.
func TestLevelConvertsNothing(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	if _, err := l.AllowN(t.Context(), "a", 10); err != nil {
		t.Fatal(err)
	}
	other, err := l.Tier(perSecond(20, 1))
	if err != nil {
		t.Fatal(err)
	}
	value := func() string {
		v, err := l.client.Do(t.Context(), l.client.B().Get().Key(l.name("a")).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := value()
	c := newCharge(t, other, "a", 1).(*Charge)
	for name, level := range map[string]func() (tb.Level, error){
		"a limiter": func() (tb.Level, error) { return other.Level(t.Context(), "a") },
		"a charge":  func() (tb.Level, error) { return c.Level(time.Now()) },
	} {
		if v, err := level(); err != nil || v.Full < 19*time.Second || value() != before {
			t.Errorf("Level of %s: %+v, %v, and the value is %x after %x", name, v, err, value(), before)
		}
	}
}
