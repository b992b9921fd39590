package tb

import (
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
)

// Reservation is the result of Reserve: a number of tokens that were taken, and the time at which
// they may be used. Embedded is the decision. If Allowed is false, nothing was taken, and the same
// Reserve succeeds after RetryAfter if no tokens are taken in between.
//
// All methods are safe for concurrent use. Cancel and Settle end the reservation: of all calls of
// the two, only the first has an effect. A Reservation that is neither cancelled nor settled keeps
// its tokens. Copies are the same reservation.
type Reservation struct {
	Decision
	delay time.Duration
	held  Held
}

// Held is what an implementation of a limiter holds for a reservation. Both methods must be safe
// for concurrent use, and only the first call of the two may have an effect.
type Held interface {
	// Cancel is Reservation.Cancel.
	Cancel()
	// Settle is Reservation.Settle. The actual cost is valid.
	Settle(actual float64) error
}

// NewReservation returns a reservation with the given decision. Implementations of a limiter call
// it. held is nil if the reservation was refused.
func NewReservation(d Decision, delay time.Duration, held Held) Reservation {
	return Reservation{d, delay, held}
}

// Delay returns the time from the clock reading of Reserve until the tokens may be used, exact to
// the nanosecond. It is 0 if they may be used at once, or if they were refused.
func (r Reservation) Delay() time.Duration { return r.delay }

// Cancel gives back the tokens of a reservation, as Charge.Cancel does, whether Delay has passed or
// was 0: the caller must not have used them. It gives back all of them if no other call has taken
// or given back tokens since. It gives back nothing while a later reservation waits, because the
// time of that one does not change.
//
// C1 holds for the other grants: the bucket is never fuller than if the tokens had not been taken.
// The exceptions are those of Charge.Cancel. In a bucket to which Settle has given tokens back
// since, the cancelled reservation counts as one that is settled at 0: see Settled costs in the
// package documentation.
func (r Reservation) Cancel() {
	if r.held != nil {
		r.held.Cancel()
	}
}

// Settle replaces the cost of the reservation by the actual cost in tokens, now:
//
//   - If the actual cost is less, the bucket gets the rest back, but not more than it can hold.
//   - If it is more, the bucket is charged with the rest. The charge may put the bucket into debt,
//     up to one capacity. Stats counts what is beyond that debt as Unpaid, or the whole rest if the
//     debt would be paid only after the clock ends, or if a full table has no room for the key.
//
// Settle returns ErrInvalidCost if actual is negative, NaN or infinite; such a call has no effect.
// The actual cost may be 0, and may be above the capacity.
func (r Reservation) Settle(actual float64) error {
	if !unit.IsActual(actual) {
		return ErrInvalidCost
	}
	if r.held == nil {
		return nil
	}
	return r.held.Settle(actual)
}
