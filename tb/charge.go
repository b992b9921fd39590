package tb

import (
	"slices"
	"time"
)

// Charge is a cost to take from one bucket, as one part of TakeAll. The limiters of tb/cas and
// tb/mutex and the Bucket of tb/cas make charges; another kind of limiter takes part by
// implementing this interface. Only one goroutine at a time may use a Charge.
//
// A charge is inert if an argument of the call that made it was invalid, or if its MayWait got a
// negative time. Peek and Take of an inert charge return the error of that argument and take
// nothing, as often as they are called, and so does TakeAll with such a charge.
type Charge interface {
	// Peek returns what Take would return at reading t. It takes nothing.
	Peek(t time.Time) (Decision, error)

	// Take takes the whole cost at reading t, or nothing.
	Take(t time.Time) (Decision, error)

	// Cancel gives back the cost of the last Take. It does nothing if that Take was refused or is
	// already cancelled. Afterwards the bucket is never fuller than if that Take had taken nothing,
	// with two exceptions, which the package documentation explains: Settle has given tokens back to
	// it since (Settled costs), or the reading of Take was ahead of a change of the limit (Changes of
	// the limit). It may be less full by the supply between Take and the last grant, and by the cost
	// at most. If the bucket was evicted or has moved since, Cancel gives nothing back.
	Cancel()
}

// entering is a Charge of which a refusal may write: it may name another tier than the one that its
// key is in, and may hold its bucket.
type entering interface {
	// Enter does what Take does if it is refused at reading t, and takes nothing if it is not.
	Enter(t time.Time)
}

// TakeAll takes from all charges at reading t, or from none, and returns the decision of each. If a
// charge refuses, the others have the decisions that they would have returned alone. The decisions
// are in buf if its capacity suffices. So a call with the result of the call before as buf
// allocates nothing. buf may be nil.
//
// TakeAll peeks at all charges first, if there are several. If one refuses, it takes nothing, and
// calls the method Enter(t time.Time) of those that refuse and have it: see cas.Charge. If another
// caller takes the tokens between Peek and Take, TakeAll cancels the charges that it has taken, as
// far as Cancel can. C1 always holds, but meanwhile a concurrent call may be refused, and two calls
// may refuse each other. Charges are taken in their order: put a slow one first, such as a bucket
// in another process.
//
// A refused call is granted after the longest RetryAfter of its charges, and not before, if there
// is no other caller. This does not hold for two charges on one bucket, or for a new key that a
// full table refuses: each charge is peeked at by itself, and the key may wait for the place of a
// bucket that the call takes from. A Charge must not occur twice in charges.
//
// t must be a reading of the clocks of all limiters. TakeAll trusts it: at a reading of another
// clock a bucket is full or empty by mistake, and it keeps a time that is ahead (C5).
//
// An error ends the call, and TakeAll cancels what it has taken. Charges that were not asked have
// the zero Decision.
func TakeAll(
	t time.Time, charges []Charge, buf []Decision,
) (decisions []Decision, allowed bool, err error) {
	decisions = slices.Grow(buf[:0], len(charges))[:len(charges)]
	clear(decisions)
	allowed = true
	if len(charges) > 1 { // one alone is all or nothing
		for i, c := range charges {
			if decisions[i], err = c.Peek(t); err != nil {
				return decisions, false, err
			}
			allowed = allowed && decisions[i].Allowed
		}
	}
	if !allowed {
		for i, c := range charges {
			// Until a key has entered the tier of its charge, another tier supplies its bucket. Between
			// Peek and Enter the bucket may have got tokens, so Enter decides whether to hold it.
			if c, ok := c.(entering); ok && !decisions[i].Allowed {
				c.Enter(t)
			}
		}
		return decisions, false, nil
	}
	for i, c := range charges {
		d, err := c.Take(t)
		decisions[i] = d
		if err != nil || !d.Allowed {
			for ; i > 0; i-- {
				charges[i-1].Cancel()
			}
			return decisions, false, err
		}
	}
	return decisions, true, nil
}
