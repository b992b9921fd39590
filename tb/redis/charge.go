package redis

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// charge is a cost on a key's bucket.
type charge struct {
	limiter *Limiter
	key     string
	name    string // of the key in Redis
	units   uint64
	asked   bool  // Redis has returned state
	state   state // after the last Peek or Take
	taken   bool
	from    *claim // that had the tokens, or nil
	failure *Error // why the failure policy made the last decision, or nil
}

var _ tb.Charge = (*charge)(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up as AllowCost
// does. It returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes nothing.
//
// Peek, Take and Cancel are a trip each, which takes the timeout of the limiter at most. They decide
// by the server's clock, and ignore the reading that they get. If the server does not decide, the
// failure policy does, and Cancel gives nothing back. A Cancel that fails gives nothing back either.
// If the bucket was reset or lost after Take, Cancel may give back tokens that the bucket has again
// already. The charge has a method Level(time.Time) (tb.Level, error), which returns the level at
// the last Peek or Take and makes no trip after one. Its method Failure() *Error returns why the
// failure policy made the last decision, or nil if the server did.
//
// TakeAll of this package takes several charges with fewer trips than tb.TakeAll.
func (l *Limiter) Charge(key string, cost float64) (tb.Charge, error) {
	if !(cost > 0 && cost <= math.MaxFloat64) { // NaN fails both
		return nil, tb.ErrInvalidCost
	}
	return &charge{
		limiter: l, key: key, name: l.name(key), units: l.layout.unitsOfCost(cost),
	}, nil
}

func (c *charge) Peek(time.Time) (tb.Decision, error) { return c.check(context.Background()) }

func (c *charge) Take(time.Time) (tb.Decision, error) { return c.take(context.Background()) }

func (c *charge) Cancel() { group{c}.undo() }

func (c *charge) check(ctx context.Context) (tb.Decision, error) {
	before, err := c.limiter.look(ctx, c.key)
	if c.failure = nil; err != nil {
		errors.As(err, &c.failure)
		return c.limiter.expect(ctx, c.key, c.units, err)
	}
	return c.decide(before), nil
}

func (c *charge) take(ctx context.Context) (tb.Decision, error) {
	c.taken, c.asked = false, false
	r, err := c.limiter.decide(ctx, c.key, c.units)
	c.failure = r.Failure
	if err == nil && r.By != FailurePolicy {
		c.state, c.from = r.state, r.from
		c.asked, c.taken = true, r.Allowed
	}
	return r.Decision, err
}

// Failure returns why the failure policy made the last decision, or nil if the server did.
func (c *charge) Failure() *Error { return c.failure }

// Level returns how full the bucket was at the last Peek or Take, or is now.
func (c *charge) Level(t time.Time) (tb.Level, error) {
	if !c.asked {
		if _, err := c.Peek(t); err != nil {
			return tb.Level{}, err
		}
	}
	return c.limiter.layout.level(&c.state), nil
}

// decide returns the decision on a bucket, and keeps the bucket.
func (c *charge) decide(before state) tb.Decision {
	c.state, c.asked = before, true
	return c.limiter.layout.take(&before, c.units)
}
