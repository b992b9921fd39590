package tb

// Stats describes a limiter's table. It counts from the creation of the limiter.
type Stats struct {
	// Keys is the number of keys in the table now.
	Keys int
	// EvictedFull counts the keys that were evicted with a full bucket, also from a table with room.
	// Nothing was lost with them.
	EvictedFull uint64
	// EvictedInDebt counts the keys that were evicted before their bucket was full
	// (ForgiveLeast only).
	EvictedInDebt uint64
	// Forgiven is the debt of those buckets in tokens. All keys together were granted at most this
	// much above their bounds, apart from late readings and Resets.
	Forgiven float64
	// RefusedNew counts the calls that were refused because the table had no room for a new key
	// (RefuseNew only). Peek does not count.
	RefusedNew uint64

	// Reservations counts the reservations that took tokens, by Wait and by charges that may
	// wait included.
	Reservations uint64
	// Cancellations counts the reservations that were cancelled, whatever they gave back.
	Cancellations uint64
	// Settled is the sum of the actual costs of all settled reservations and charges, in tokens.
	Settled float64
	// Unpaid is the part of Settled that was not charged, in tokens, because the bucket would have
	// been in debt by more than one capacity or after the clock ends, or a full table had no room.
	Unpaid float64
}
