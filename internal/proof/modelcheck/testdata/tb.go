package tb

import "github.com/seed-181794aa/ratelimit/tb"

// Decision is that of the package itself, of which nothing but TakeAll is in a variant.
type Decision = tb.Decision

// All returns the charges as those of this edition of TakeAll.
func All(charges []tb.Charge) []Charge {
	all := make([]Charge, len(charges))
	for i, c := range charges {
		all[i] = c
	}
	return all
}
