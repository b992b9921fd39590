// Package tb states the contract of a keyed token-bucket rate limiter. Package tb/cas
// implements it without locks, and is the one to use; package ratelimit at the root of the
// module gives both one import. Package tb/mutex is the reference that tb/cas is checked
// against, and tb/tbtest checks any implementation.
//
// A bucket holds up to [Limit].Capacity tokens and is refilled continuously at Limit.Tokens
// every Limit.Per. A call asks for a number of tokens. It takes all of them, or it takes none
// and returns how long to wait. Every key has its own bucket. The bucket of a new key is full.
//
// # Contract
//
//   - C1, bound. For any key and any two instants a ≤ b, the tokens granted after a and up to b
//     are at most Capacity + rate·(b−a) and one quantum. The time of an instant is the latest
//     clock reading that a call on the limiter has brought by then; see C5 for late readings.
//   - C2, no lost credit. A call is refused only if the ideal continuous bucket holds less than
//     its cost and one quantum. No sequence of calls, granted or refused, loses a fraction.
//   - C3, exact wait. After a refusal at reading t, and with no other caller, the same call is
//     granted at t+RetryAfter and refused one nanosecond earlier.
//   - C4, refusals write nothing. To refuse a call on a key in the table only loads memory, so
//     refusals on a hot key scale with the processors.
//   - C5, time never moves back. A reading older than the bucket's own time does not change that
//     time and credits nothing. The call is decided on the bucket as it stands, and RetryAfter
//     counts from the caller's own reading.
//   - C6, lock-free hits. On a key in the table a call takes no lock, allocates nothing and
//     starts no goroutine. A stalled caller stalls no other caller.
//   - C7, bounded. There are never more than MaxKeys keys, at any instant.
//   - C8, hostile input. A cost that is zero, negative, NaN or infinite is [ErrInvalidCost] and
//     changes nothing. An impossible configuration is a [*ConfigError].
//
// C4 and C6 are promises of tb/cas, which documents one rare exception; tb/mutex keeps the
// others.
//
// The quantum is the resolution of the fixed-point arithmetic: at most 10⁻⁶ token, or
// Capacity·2⁻²³ tokens if that is more.
//
// # Late readings
//
// A caller reads the clock first and reaches the bucket later, so readings arrive out of order.
// C5 makes that safe: a late call is granted only what its bucket holds. The protection has one
// limit. A bucket knows only its own readings. If a new or long-idle bucket receives a reading
// late by d, it may grant up to rate·d more than C1, measured by the time of the other keys.
//
// A reading far ahead of the others harms its own key. The bucket keeps that time (C5), so it is
// refilled only from then on. Under [RefuseNew] the key also stays in the table until its bucket
// is full. Other keys are affected in two cases. If the key is new, it may evict buckets that
// are full by its reading. Those keys start anew, and no new key starts before the last of those
// buckets would have been full, which is at most the time to fill an empty bucket. If the
// bucket ahead is itself evicted by a second such reading, every new key starts at about that
// time.
//
// # Eviction
//
// The table of keys is bounded (C7). To make room it evicts the bucket that is, or will soonest
// be, full. A full bucket equals a new one, so to evict it loses nothing. If no bucket that the
// table looks at is full, [Overflow] decides. [ForgiveLeast] evicts the bucket with the least
// time left to full, forgives its debt and counts it in [Stats]. [RefuseNew] refuses the new key
// until a bucket is full, and C1 holds without exception.
//
// An implementation may bound the number of buckets that it looks at for one new key. Then it
// may forgive a debt, or refuse a new key, although a bucket that it did not look at is full.
// tb/mutex looks at all buckets. tb/cas looks at them in the order in which they were to be full
// when it last looked, and gives up after 1,024 that were used since.
//
// A new bucket starts full. It starts no earlier than the latest instant at which an evicted
// bucket had become full, or at which a debt was forgiven. So a key that was evicted and comes
// back with a late reading is not credited the same time twice. This holds for every new key,
// because the table does not know which keys it has evicted. A Reset sets no such time.
//
// # Glossary
//
// The implementations share these words:
//
//   - unit: the fixed-point fraction of a token, 10⁰ to 10⁻⁶ of it.
//   - quantum: one unit, as the contract sees it.
//   - instant: a clock reading in nanoseconds since the limiter's epoch.
//   - supply S(t): the units that the rate has supplied by instant t.
//   - base: the supply from which a bucket counts its time.
//   - delta: the bucket's own time, in units of supply after the base.
//   - deficit: the units that the bucket is missing to full.
//   - debt: the same in tokens, where it is forgiven or left over.
//   - seal: the bit that ends a bucket's word before the bucket moves to a new base.
//   - successor: the bucket at the new base.
//   - stamp: the instant at which a bucket will be full, its rank in the order of eviction.
//   - charge: a cost on one bucket, one part of [TakeAll]. Undo gives it back.
//   - receipt: what Undo needs to know of the grant.
package tb
