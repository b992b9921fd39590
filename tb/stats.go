package tb

// Stats describes a limiter's table. The counts run since its creation.
type Stats struct {
	// Keys is the number of keys in the table now.
	Keys int
	// EvictedFull counts the keys whose bucket was full when it was evicted:
	// nothing was lost with them.
	EvictedFull uint64
	// EvictedInDebt counts the keys that were evicted before their bucket was full
	// (ForgiveLeast only).
	EvictedInDebt uint64
	// Forgiven is what the buckets of EvictedInDebt lacked to full, in tokens: the
	// most that all keys together may have been granted above their bound, but for late
	// readings.
	Forgiven float64
	// RefusedNew counts the calls refused because a new key found no room
	// (RefuseNew only). A TakeAll of several charges is refused by a look at the
	// table, as a rule, which is not counted.
	RefusedNew uint64
}
