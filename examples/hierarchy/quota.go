package main

import (
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

// sender is the key of a user. Two tenants may have users of the same name.
type sender struct{ tenant, user string }

// quota has a limit for each level. Users, tenants and the relay have limits in recipients, and
// refuse. The gateway accepts one message every 50 ms, so its level delays messages.
type quota struct {
	users   *ratelimit.Limiter[sender]
	tenants *ratelimit.Limiter[string]
	relay   *ratelimit.Bucket
	gateway *ratelimit.Bucket
	now     func() time.Time
	calls   sync.Pool // of *call
}

// levels are the names of the levels, in the order of the charges of a call.
var levels = [...]string{"user", "tenant", "relay", "gateway"}

// call is what one call on all levels needs. Calls are pooled, so take does not allocate.
type call struct {
	user      ratelimit.KeyCharge[sender]
	tenant    ratelimit.KeyCharge[string]
	relay     ratelimit.BucketCharge
	gateway   ratelimit.BucketCharge
	charges   [len(levels)]ratelimit.Charge
	decisions [len(levels)]ratelimit.Decision
}

func newCall() any {
	c := new(call)
	c.charges = [...]ratelimit.Charge{&c.user, &c.tenant, &c.relay, &c.gateway}
	return c
}

func newQuota(now func() time.Time) (*quota, error) {
	clock := ratelimit.WithClock(now)
	users, err := ratelimit.New[sender](
		ratelimit.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, clock)
	if err != nil {
		return nil, err
	}
	tenants, err := ratelimit.New[string](
		ratelimit.Limit{Capacity: 25, Tokens: 5, Per: time.Second}, clock)
	if err != nil {
		return nil, err
	}
	relay, err := ratelimit.NewBucket(
		ratelimit.Limit{Capacity: 35, Tokens: 10, Per: time.Second}, clock)
	if err != nil {
		return nil, err
	}
	gateway, err := ratelimit.NewBucket(
		ratelimit.Limit{Capacity: 1, Tokens: 20, Per: time.Second}, clock)
	if err != nil {
		return nil, err
	}
	return &quota{
		users: users, tenants: tenants, relay: relay, gateway: gateway,
		now: now, calls: sync.Pool{New: newCall},
	}, nil
}

// verdict is the decision of the level that binds.
type verdict struct {
	ratelimit.Decision
	level string
	delay time.Duration // until a granted message may be sent
}

// take takes a message from all levels, or from none. The only error is ratelimit.ErrInvalidCost.
func (q *quota) take(from sender, recipients int) (v verdict, err error) {
	c := q.calls.Get().(*call)
	defer q.calls.Put(c)
	cost := float64(recipients)
	if c.user, err = q.users.Charge(from, cost); err != nil {
		return v, err
	}
	c.tenant, _ = q.tenants.Charge(from.tenant, cost) // the cost is valid
	c.relay, _ = q.relay.Charge(cost)
	c.gateway, _ = q.gateway.Charge(1)
	c.gateway.MayWait(50 * time.Millisecond)

	decisions, allowed, err := ratelimit.TakeAll(q.now(), c.charges[:], c.decisions[:])
	if err != nil {
		return v, err
	}
	deciding := decisions
	if allowed {
		deciding = deciding[:len(deciding)-1] // the gateway saves no tokens
	}
	i := binding(deciding)
	return verdict{decisions[i], levels[i], c.gateway.Delay()}, nil
}

// binding returns the index of the decision that binds. A refused call has to wait for the level
// with the longest RetryAfter. A granted call has the fewest tokens left at the level that is
// likely to refuse next.
func binding(decisions []ratelimit.Decision) int {
	binds := 0
	for i, d := range decisions {
		b := decisions[binds]
		if d.RetryAfter > b.RetryAfter ||
			d.RetryAfter == b.RetryAfter && d.Remaining < b.Remaining {
			binds = i
		}
	}
	return binds
}
