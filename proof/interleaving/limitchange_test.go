package interleaving

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/mutexstate"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// The methods of the reference for reservations and changes of the limit.

func (r reference) Reserve(
	ctx context.Context, key string, cost float64,
) (tb.Reservation, error) {
	defer r.useLimit(key)()
	return r.TokenBucket.Reserve(ctx, key, cost)
}

// Cancel does nothing if the step has its second outcome.
func (r reference) Cancel(_ string, v tb.Reservation) {
	if r.caller == nil || !r.other {
		v.Cancel()
	}
}

func (r reference) Settle(key string, v tb.Reservation, actual float64) error {
	if r.caller != nil && r.other && r.shared {
		return nil
	}
	defer r.useLimit(key)()
	return v.Settle(actual)
}

func (reference) Receipt(tb.Reservation) uint64 { return 0 }

func (r reference) SetLimit(limit tb.Limit) error {
	*r.earlier = mutexstate.Limits(r.TokenBucket)
	return r.TokenBucket.SetLimit(limit)
}

func (r reference) SetTier(tier int, limit tb.Limit) error {
	*r.earlier = mutexstate.Limits(r.TokenBucket)
	return r.TokenBucket.SetTier(tier, limit)
}

func (r reference) Hold(ctx context.Context, key string, until time.Time) error {
	defer r.useLimit(key)()
	if r.caller != nil {
		if _, ok := r.makeRoom(*r.client.now, key, 1); !ok {
			return tb.ErrTableFull
		}
		defer r.unlock()
	}
	return r.TokenBucket.Hold(ctx, key, until)
}

// tierCharge is a charge that names the tier of its key.
type tierCharge struct {
	tb.Charge
	key string
	of  reference
}

func (r reference) ChargeIn(tier int, key string, cost float64) (tb.Charge, error) {
	c, err := r.TokenBucket.ChargeIn(tier, key, cost)
	return &tierCharge{&c, key, r}, err
}

func (c *tierCharge) Keep(tokens float64) { c.Charge.(*mutex.Charge[string]).Keep(tokens) }

func (c *tierCharge) Peek(t time.Time) (tb.Decision, error) {
	defer c.of.useLimit(c.key)()
	return c.Charge.Peek(t)
}

func (c *tierCharge) Take(t time.Time) (tb.Decision, error) {
	defer c.of.useLimit(c.key)()
	return c.Charge.Take(t)
}

// useLimit makes the limiter use the earlier limit if the step has its second outcome. The function
// that it returns makes the limiter use the present limit again.
func (r reference) useLimit(key string) (restore func()) {
	if r.caller == nil || !r.other || *r.earlier == nil {
		return func() {}
	}
	return mutexstate.Use(r.TokenBucket, *r.earlier, key)
}
