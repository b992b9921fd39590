package tb

import (
	"errors"
	"iter"
	"time"
)

// StoreLimiter is a limit of the buckets in a store, such as a table in memory or Redis. A type
// that implements httplimit.Store returns it. It must be safe for concurrent use.
type StoreLimiter interface {
	// Charge returns a charge on key's bucket, which has this limit from then on. It takes nothing.
	// It returns ErrInvalidCost, and a charge that is inert, if cost is zero, negative, NaN or
	// infinite: see Charge.
	Charge(key string, cost float64) (StoreCharge, error)
	// SetLimit replaces the limit. Each bucket keeps its tokens, but not more than the new capacity,
	// and its debt. If SetLimit returns an error, the limit stays.
	SetLimit(limit Limit) error
	Limit() Limit
}

// StoreCharge is a Charge that can wait and be settled. Its methods return within a time that the
// store bounds.
type StoreCharge interface {
	Charge
	// Level returns how full the bucket is at reading t, or at the last Peek or Take.
	Level(t time.Time) (Level, error)
	// MayWait lets the next Take put the bucket in debt, as Wait does, if the tokens may be used
	// within that time. With 0, Take does not wait. With a negative time the charge is inert from
	// then on, and its error is a *ConfigError.
	MayWait(within time.Duration)
	// Keep lets the next Takes take the cost only if a number of tokens is left: see Holds in the
	// package documentation. With a number that is negative, NaN or infinite, or if the charge may
	// wait, it is inert from then on.
	Keep(tokens float64)
	// HoldOnRefusal lets the next Takes, if they are refused, hold the bucket for a time: see Holds.
	// With a negative time, or if the charge may wait, it is inert from then on.
	HoldOnRefusal(d time.Duration)
	// Delay returns the time from the last Take until its tokens may be used.
	Delay() time.Duration
	// Settle replaces the cost of the last Take by the actual cost, as Reservation.Settle does.
	Settle(actual float64) error
}

// SetLimits gives each limiter its limit, or none of them. If a limiter returns an error, those
// before it get back the limits that they had, and SetLimits returns the error, joined with the
// errors of giving back. It asks for no further limiter then. A limiter that has its limit is left
// alone.
func SetLimits(limits iter.Seq2[StoreLimiter, Limit]) error {
	var undo []func() error
	for l, next := range limits {
		last := l.Limit()
		if next == last {
			continue
		}
		if err := l.SetLimit(next); err != nil {
			for _, f := range undo {
				err = errors.Join(err, f())
			}
			return err
		}
		undo = append(undo, func() error { return l.SetLimit(last) })
	}
	return nil
}
