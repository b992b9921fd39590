package tb

import "time"

// Charge is a cost to take from one bucket, as one part of TakeAll. The limiters of tb/cas and
// tb/mutex and the Bucket of tb/cas make charges; another kind of limiter takes part by
// implementing this interface. Only one goroutine at a time may use a Charge.
type Charge interface {
	// Check returns what Take would return at reading t. It takes nothing.
	Check(t time.Time) (Decision, error)

	// Take takes the whole cost at reading t, or nothing.
	Take(t time.Time) (Decision, error)

	// Undo gives back the cost of the last Take. It does nothing if that Take was refused or is
	// already undone. Afterwards the bucket is never fuller than if that Take had taken nothing,
	// unless Settle has given tokens back to it since (see Settled costs above). It may be less
	// full by the supply between Take and the last grant, and by the cost at most. If the bucket
	// was evicted or has moved to a new base since, Undo gives nothing back.
	Undo()
}

// TakeAll takes from all charges at reading t, or from none. It fills decisions, which must be as
// long as charges, with the decision of each. If a charge refuses, the others have the decisions
// that they would have returned alone.
//
// TakeAll checks all charges first, so a refused call normally writes nothing. If another caller
// takes the tokens between Check and Take, TakeAll undoes the charges that it has taken, as far
// as Undo can. Between Take and Undo other callers see those tokens as spent. C1 always holds,
// but a concurrent call may be refused meanwhile, and two calls may refuse each other. Charges
// are taken in their order. Put a slow one first, such as a bucket in another process, so that no
// other charge is held while it is taken.
//
// A refused call is granted after the longest RetryAfter of its charges, and not before, if there
// is no other caller. This does not hold for two charges on one bucket, or for two new keys in a
// full table, because each is checked by itself. A Charge must not occur twice in charges. t must
// be a reading of the clocks of all its limiters.
//
// An error ends the call, and TakeAll undoes what it has taken.
func TakeAll(t time.Time, charges []Charge, decisions []Decision) (allowed bool, err error) {
	allowed = true
	if len(charges) > 1 { // one alone is all or nothing
		for i, c := range charges {
			if decisions[i], err = c.Check(t); err != nil {
				return false, err
			}
			allowed = allowed && decisions[i].Allowed
		}
	}
	if !allowed {
		return false, nil
	}
	for i, c := range charges {
		d, err := c.Take(t)
		decisions[i] = d
		if err != nil || !d.Allowed {
			for ; i > 0; i-- {
				charges[i-1].Undo()
			}
			return false, err
		}
	}
	return true, nil
}
