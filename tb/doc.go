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
// A reading far ahead of the others harms its own key. The bucket keeps that time (C5),
// so the key is refilled only from then on. Under [RefuseNew] it also keeps its place in
// the table until it is full. No other key is affected, with two exceptions. If the key is
// new, other buckets may be evicted for it, which all are full by its reading. Those keys
// start anew, and no new key starts before the last of those buckets would have been full:
// at most the time ahead that an empty bucket takes to fill. And if the bucket ahead is
// itself evicted by a second such reading, every new key starts at about that time.
//
// # Eviction
//
// The table of keys is bounded (C7). To make room it evicts the bucket that is
// full, or will be full, first. A full bucket equals a new one, so evicting it
// loses nothing. If none of the buckets that it looks at is full, [Overflow] decides.
// [ForgiveLeast] evicts the one of them with the least time left to full, forgives its
// debt and counts it in [Stats]. [RefuseNew] refuses the new key until one is full, and C1
// holds without exception.
//
// An implementation may bound how many buckets it looks at for one new key. Then a debt may
// be forgiven, or a new key refused, although a bucket that it did not look at is full.
// tb/mutex looks at all. tb/cas looks at them in the order in which they were to be full
// when it last looked, and gives up after 1,024 that were used since.
//
// A new bucket starts full, and no earlier than the latest instant at which a full bucket
// that was evicted had become full, or a debt was forgiven. So a key that was evicted and
// comes back with a late reading is not credited any time twice. This holds for every new
// key, as the table forgets which keys it evicted. A Reset sets no such time.
package tb
