package tb

import "time"

// Charge is one part of a call on several buckets: a cost to take from one of them.
// TakeAll takes them together. The limiters of tb/cas and tb/mutex have charges; a
// limiter of another kind takes part by implementing this interface. A Charge is for
// one caller at a time.
type Charge interface {
	// Check returns what Take would answer at reading t, and takes nothing.
	Check(t time.Time) (Decision, error)

	// Take takes the whole cost at reading t, or nothing.
	Take(t time.Time) (Decision, error)

	// Undo gives back what the last Take was granted, and does nothing if it was
	// refused or is undone. The bucket is then never fuller than it would be if that
	// Take had taken nothing. If others were granted at later readings in between, it
	// may be less full, by what was supplied until then, and the cost at most.
	Undo()
}

// TakeAll takes from all charges at reading t, or from none. decisions must be as long
// as charges, and is filled with the answer of each: if one or more refuse, those of the
// others say what they would have granted.
//
// The charges are checked first, so a call that is refused writes nothing as a rule.
// If what was checked is gone when it is to be taken, because another caller was faster,
// the charges that were taken are undone. Until then other callers find them taken;
// nobody is ever granted more than C1 allows, but somebody may meanwhile be refused, and
// two calls may refuse each other. Charges are taken in their order: one whose Take is slow,
// because its bucket is in another process, had better be the first.
//
// A call that is refused is granted after the longest RetryAfter of its charges, and not
// before, if nobody else comes. That does not hold for charges that are in each other's way:
// two on one bucket are checked each by itself, and then taken or undone, and so are two new
// keys in a full table. A Charge must not be there twice.
//
// An error ends the call, with nothing taken.
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
