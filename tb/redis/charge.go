package redis

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket, as one part of TakeAll. Peek, Take, Cancel and
// Settle are a round trip each, which takes the timeout of the limiter at most, or none if it is
// known that the bucket cannot pay, or if a lease pays. They decide by the server's clock, and
// ignore the reading that they get. If the server does not decide, the failure policy does, and
// Cancel gives nothing back. If a Cancel fails, the server may have given the tokens back or not.
// After a settlement that has ended a debt, Cancel may give back less than Cancel of tb/mutex. If
// the bucket was reset or lost after Take, Cancel may give back tokens that the bucket has again
// already.
//
// TakeAll of this package takes several charges in fewer round trips than tb.TakeAll. Only one
// goroutine at a time may use a Charge.
type Charge struct {
	limiter *Limiter
	layout  *layout
	key     string
	name    string // of the key in Redis
	checks  check.Charge
	tokens  float64
	item    item
	last    result // of Take; a later Peek or Level brings after and Failure up to date
	taken   atomic.Bool
}

var (
	_ tb.StoreLimiter = (*Limiter)(nil)
	_ tb.Held         = (*Charge)(nil)
)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up as AllowN
// does. It returns tb.ErrInvalidCost, and an inert charge, if cost is zero, negative, NaN or
// infinite. It takes nothing. The result is a *Charge.
func (l *Limiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	return l.charge(key, cost)
}

func (l *Limiter) charge(key string, cost float64) (*Charge, error) {
	m := l.layout.Load()
	c := &Charge{limiter: l, layout: m, key: key, name: l.name(key), tokens: cost}
	if c.checks.Err = check.Cost(cost); c.checks.Err == nil {
		c.item.units = m.unitsOf(cost)
	}
	return c, c.checks.Err
}

// MayWait lets the charge put the bucket into debt, as Wait does, if the tokens can be used within
// the given time from Take, of which whole microseconds count. With a negative time it is inert
// from then on, and also if it keeps tokens or holds the bucket.
func (c *Charge) MayWait(within time.Duration) {
	if !c.checks.MayWait(within, c.item.kind == kindKeep) {
		return
	}
	switch {
	case within > 0:
		c.item = reservation(c.item.units, deepest, within)
	case c.item.kind == kindReserve:
		c.item = item{units: c.item.units}
	}
}

// Keep lets the charge take tokens only if a number of tokens is left, rounded up as the cost. No
// lease pays such a charge. It is inert from then on if the number is negative, NaN or infinite, or
// if the charge may wait.
func (c *Charge) Keep(tokens float64) {
	if c.checks.Keep(tokens, c.item.kind == kindReserve) {
		c.guard(c.layout.unitsOf(tokens), c.item.hold)
	}
}

// HoldOnRefusal lets a refused Take hold the bucket for a time, in whole microseconds, by the same
// command. In TakeAll, each charge whose own bucket lacks the tokens holds it, if its command is
// sent. A bucket that is held, a cost that can never be granted, and a failure policy hold nothing.
// No lease pays such a charge. It is inert from then on if the time is negative, or if the charge
// may wait.
func (c *Charge) HoldOnRefusal(d time.Duration) {
	if 0 < d && d < time.Microsecond {
		d = 0
	}
	if c.checks.HoldOnRefusal(d, c.item.kind == kindReserve) {
		c.guard(c.item.keep, uint64(d.Microseconds()))
	}
}

// guard sets what is left, and how long a refusal holds: both are 0 if the charge may wait.
func (c *Charge) guard(keep, hold uint64) {
	if c.item.kind == kindReserve {
		return
	}
	c.item = item{units: c.item.units, keep: keep, hold: hold}
	if keep > 0 || hold > 0 {
		c.item.kind = kindKeep
	}
}

func reservation(units, debt uint64, within time.Duration) item {
	return item{
		kind: kindReserve, units: units, debt: debt, within: within.Truncate(time.Microsecond),
	}
}

// Delay returns the time from the last Take until its tokens may be used.
func (c *Charge) Delay() time.Duration {
	if !c.last.Allowed {
		return 0
	}
	return c.last.delay
}

// Peek implements tb.Charge. If the bucket lacks the cost, it is converted as by Take. A decision
// of the failure policy is not counted.
func (c *Charge) Peek(time.Time) (tb.Decision, error) {
	if c.checks.Err != nil {
		return tb.Decision{}, c.checks.Err
	}
	now, err := c.limiter.look(context.Background(), c.layout, c.key, c.item)
	c.last.after, c.last.Failure = now, nil
	if errors.As(err, &c.last.Failure) && c.limiter.policy != Fail {
		d, _ := c.limiter.fallback(c.layout, c.key, &c.item, c.last.Failure.Cause, true)
		return d, nil
	}
	if err != nil {
		return tb.Decision{}, err
	}
	return c.layout.apply(&now, &c.item).Decision, nil
}

// Take implements tb.Charge.
func (c *Charge) Take(time.Time) (tb.Decision, error) { return c.take(context.Background()) }

// Cancel implements tb.Charge.
func (c *Charge) Cancel() {
	if !c.taken.CompareAndSwap(true, false) {
		return
	}
	c.last.share.Cancel()
	l, it := c.limiter, undoOf(c.last.before, c.item.units)
	if x := c.last.from; x != nil && x == l.leases.latest(c.key) && l.leases.now() < x.end {
		x.left.Add(it.units)
		return
	}
	if c.item.kind == kindReserve {
		l.counts.cancellations.Add(1)
	}
	_, err := l.call(context.Background(), c.layout, c.key, it)
	_ = l.undecided(err)
}

// Settle replaces the cost of the last Take by the actual cost, as Settle of a reservation does.
func (c *Charge) Settle(actual float64) error {
	if err := check.Actual(actual); err != nil {
		return err
	}
	if !c.taken.CompareAndSwap(true, false) {
		return nil
	}
	l := c.limiter
	m := l.layout.Load()
	it := m.settlement(c.tokens, actual)
	if it.units == 0 {
		return nil
	}
	if l.share != nil {
		_ = c.last.share.Settle(min(actual, float64(l.share.Limit().Capacity)))
	}
	s, err := l.call(context.Background(), m, c.key, it)
	if err == nil && it.kind == kindCharge {
		l.counts.unpaid.Add(it.units-m.apply(&s, &it).units, m.scale)
	}
	return l.undecided(err)
}

// Failure returns why the failure policy made the last decision, or nil if the server did.
func (c *Charge) Failure() *Error { return c.last.Failure }

// Level returns how full the bucket was at the last Peek or Take. If the server has not decided
// that one, or there was none, Level asks it, as Limiter.Level does.
func (c *Charge) Level(time.Time) (tb.Level, error) {
	if c.last.after == (state{}) {
		now, err := c.limiter.look(context.Background(), c.layout, c.key, item{kind: kindLook})
		if err != nil {
			return tb.Level{}, err
		}
		c.last.after = now
	}
	return c.layout.level(&c.last.after, c.item.keep), nil
}

func (c *Charge) take(ctx context.Context) (tb.Decision, error) {
	c.taken.Store(false)
	if c.checks.Err != nil {
		c.last = result{}
		return tb.Decision{}, c.checks.Err
	}
	var r result
	err := c.limiter.decide(ctx, c.layout, c.key, &c.item, &r)
	c.keep(&r)
	return r.Decision, err
}

func (c *Charge) keep(r *result) {
	c.last = *r
	taken := r.Allowed && r.By != ByPolicy
	if taken && c.item.kind == kindReserve {
		c.limiter.counts.reservations.Add(1)
	}
	c.taken.Store(taken)
}
