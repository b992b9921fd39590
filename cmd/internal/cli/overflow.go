package cli

import "github.com/seed-181794aa/ratelimit/tb"

// Overflow returns the meaning of a value of the flag --overflow, forgive or refuse.
func Overflow(value string) tb.Overflow {
	if value == "refuse" {
		return tb.RefuseNew
	}
	return tb.ForgiveLeast
}
