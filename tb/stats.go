package tb

// Stats describes a limiter's table. The counts begin with the limiter.
type Stats struct {
	// Keys is the number of keys in the table now.
	Keys int
	// EvictedFull counts the keys whose bucket was full when it was evicted. Nothing was lost
	// with them.
	EvictedFull uint64
	// EvictedInDebt counts the keys that were evicted before their bucket was full
	// (ForgiveLeast only).
	EvictedInDebt uint64
	// Forgiven is the debt of those buckets in tokens. Apart from late readings, all keys
	// together were granted at most this much above their bounds.
	Forgiven float64
	// RefusedNew counts the calls that were refused because the table had no room for a new key
	// (RefuseNew only). It does not count refusals by Check.
	RefusedNew uint64
}
