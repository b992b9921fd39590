package redis

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket, as one part of TakeAll. Peek, Take, Cancel and
// Settle are a trip each, which takes the timeout of the limiter at most. They decide by the
// server's clock, and ignore the reading that they get. If the server does not decide, the failure
// policy does, and Cancel gives nothing back. A Cancel that fails gives nothing back either. If the
// bucket was reset or lost after Take, Cancel may give back tokens that the bucket has again
// already.
//
// TakeAll of this package takes several charges with fewer trips than tb.TakeAll. Only one
// goroutine at a time may use a Charge.
type Charge struct {
	limiter *Limiter
	layout  *layout
	key     string
	name    string // of the key in Redis
	tokens  float64
	item    item
	asked   bool  // Redis has returned state
	state   state // after the last Peek or Take
	before  state // before the last Take
	taken   bool
	delay   time.Duration
	from    *claim // that had the tokens, or nil
	failure *Error // why the failure policy made the last decision, or nil
}

var _ tb.Charge = (*Charge)(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up as AllowCost
// does. It returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes nothing.
// The result is a *Charge.
func (l *Limiter) Charge(key string, cost float64) (tb.Charge, error) {
	if err := checkCost(cost); err != nil {
		return nil, err
	}
	m := l.layout.Load()
	return &Charge{
		limiter: l, layout: m, key: key, name: l.name(key), tokens: cost,
		item: item{units: m.unitsOfCost(cost)},
	}, nil
}

// MayWait lets the charge put the bucket into debt, as Wait does, if the tokens can be used within
// the given time from Take, of which whole microseconds count.
func (c *Charge) MayWait(within time.Duration) {
	c.item = reservation(c.item.units, deepest, within)
	if within <= 0 {
		c.item.kind = kindTake
	}
}

// reservation returns an item that may wait.
func reservation(units, debt uint64, within time.Duration) item {
	return item{
		kind: kindReserve, units: units, debt: debt, within: max(0, within).Truncate(time.Microsecond),
	}
}

// Delay returns the time from the last Take until its tokens may be used.
func (c *Charge) Delay() time.Duration { return c.delay }

// Peek implements tb.Charge.
func (c *Charge) Peek(time.Time) (tb.Decision, error) { return c.peek(context.Background()) }

// Take implements tb.Charge.
func (c *Charge) Take(time.Time) (tb.Decision, error) { return c.take(context.Background()) }

// Cancel implements tb.Charge.
func (c *Charge) Cancel() { group{c}.undo() }

// Settle replaces the cost of the last Take by the actual cost, as Settle of a reservation does.
func (c *Charge) Settle(actual float64) error {
	if err := checkActual(actual); err != nil || !c.taken {
		return err
	}
	c.taken = false
	return c.limiter.settle(c.key, c.tokens, actual)
}

// Failure returns why the failure policy made the last decision, or nil if the server did.
func (c *Charge) Failure() *Error { return c.failure }

// Level returns how full the bucket was at the last Peek or Take, or is now. It makes no trip after
// one of them.
func (c *Charge) Level(t time.Time) (tb.Level, error) {
	if !c.asked {
		if _, err := c.Peek(t); err != nil {
			return tb.Level{}, err
		}
	}
	return c.layout.level(&c.state), nil
}

func (c *Charge) peek(ctx context.Context) (tb.Decision, error) {
	before, err := c.limiter.look(ctx, c.layout, c.key)
	if c.failure = nil; err != nil {
		errors.As(err, &c.failure)
		return c.limiter.expect(ctx, c.layout, c.key, c.item.units, err)
	}
	c.state, c.asked = before, true
	return c.layout.apply(&before, &c.item).Decision, nil
}

func (c *Charge) take(ctx context.Context) (tb.Decision, error) {
	c.taken, c.asked, c.delay = false, false, 0
	r, err := c.limiter.decide(ctx, c.layout, c.key, c.item)
	c.failure = r.Failure
	if err == nil && r.By != ByPolicy {
		c.keep(r)
	}
	return r.Decision, err
}

// keep keeps what Redis has decided.
func (c *Charge) keep(r result) {
	c.before, c.state, c.from, c.asked, c.taken = r.before, r.before, r.from, true, r.Allowed
	if r.Allowed {
		c.delay = r.delay
		if r.from == nil {
			c.layout.apply(&c.state, &c.item)
		}
	}
}

// checkActual returns tb.ErrInvalidCost unless actual is finite and not negative.
func checkActual(actual float64) error {
	if !(actual >= 0 && actual <= math.MaxFloat64) { // NaN fails both
		return tb.ErrInvalidCost
	}
	return nil
}
