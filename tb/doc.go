// Package tb states the contract of a keyed token-bucket rate limiter. The
// packages tb/cas (lock-free, the one to use) and tb/mutex (the reference it is
// checked against) implement it; tb/tbtest checks any implementation.
//
// A bucket holds up to [Limit].Capacity tokens and is refilled continuously at
// Limit.Tokens every Limit.Per. A call asks for a number of tokens: it takes all
// of them, or none and is told how long to wait. Every key has a bucket of its
// own, and a key that was never seen has a full one.
//
// # Contract
//
//   - C1, bound. For any key and any two instants a ≤ b, the tokens granted
//     after a and up to b are at most Capacity + rate·(b−a) and one quantum. The
//     time of an instant is the latest clock reading that a call on the limiter
//     has brought by then; see C5 for readings that arrive late.
//   - C2, no lost credit. A call is refused only if the ideal continuous bucket
//     holds less than its cost and one quantum. No sequence of calls, refused
//     ones included, rounds anything away.
//   - C3, exact wait. After a refusal at reading t, and with no other caller, the
//     same call is granted at t+RetryAfter and refused one nanosecond earlier.
//   - C4, refusals write nothing. Refusing a call on a key in the table is loads
//     only, so refusals on a hot key scale with the cores.
//   - C5, time never moves back. A reading older than the bucket's own time
//     changes neither: the call is decided on the bucket as it stands, with
//     RetryAfter counted from the caller's own reading, and no interval is
//     credited twice.
//   - C6, lock-free hits. On a key in the table a call takes no lock, allocates
//     nothing and starts no goroutine; a stalled caller stalls nobody.
//   - C7, bounded. There are never more than MaxKeys keys, at any instant.
//   - C8, hostile input. A cost that is zero, negative, NaN or infinite is
//     [ErrInvalidCost] and changes nothing. An impossible configuration is a
//     [*ConfigError].
//
// C4 and C6 are promises of tb/cas, which documents one rare exception; tb/mutex keeps
// the others.
//
// The quantum is the resolution of the fixed-point arithmetic: at most 10⁻⁶
// token, or Capacity·2⁻²³ tokens if that is more.
//
// # Late readings
//
// Callers read the clock first and reach the bucket later, in another order. C5
// makes that safe: a late call is granted only what its bucket holds, and its
// bucket keeps its time. One limit of that protection is worth knowing: what a
// bucket cannot know is the time that other keys have seen. If a call brings a
// reading that is late by d to a bucket that was full and unused since, or is new,
// the bucket refills from that reading on, and up to rate·d more is granted by the
// time that the other keys have seen than C1 allows.
//
// # Eviction
//
// The table of keys is bounded (C7). To make room it evicts the bucket that is
// full, or will be full, first. A full bucket equals a new one, so evicting it
// loses nothing. If no bucket is full, [Overflow] decides. [ForgiveLeast] evicts
// the bucket with the least time left to full, of those it looks at, forgives its
// debt and counts it in [Stats]. [RefuseNew] refuses the new key until a bucket is
// full, and C1 holds without exception. An implementation may bound how many buckets
// it looks at for one new key; then RefuseNew may refuse a key although, or for longer
// than, a bucket it did not look at is full.
//
// A key that was evicted and comes back starts full, at a time no earlier than the
// instant at which it was full, or its debt was forgiven. As the table forgets which
// keys it evicted, this holds for every new key.
package tb
