// Package tb states the contract of a keyed token-bucket rate limiter. Package tb/cas is the
// implementation to use. Package ratelimit, at the root of the module, exports the names of tb
// and tb/cas, so that one import is enough. Package tb/mutex is the reference that tb/cas is
// checked against, and tb/tbtest checks any implementation.
//
// A bucket holds up to [Limit].Capacity tokens and is refilled continuously at Limit.Tokens
// every Limit.Per. A call asks for a number of tokens. It takes all of them, or it takes none
// and returns how long to wait. Every key has its own bucket. The bucket of a new key is full.
// The glossary below defines the words of this contract, such as quantum, unit and debt.
//
// # Contract
//
//   - C1, bound. For any key and any two moments a ≤ b, the tokens granted after a and up to b
//     are at most Capacity + rate·(b−a) plus one quantum. The time of a moment is the latest
//     clock reading that a call on the limiter has brought by then. Late readings and forgiven
//     debt add to the bound: see below. Each Reset adds up to Capacity and the debt of the bucket.
//     A reservation counts at its slot, and settled costs have a bound of their own: see below.
//   - C2, no lost credit. A call is refused only if the ideal continuous bucket holds less than
//     the cost plus one quantum, where each cost is rounded up to units. No sequence of grants
//     and refusals loses a fraction. An undone charge and a cancelled reservation may lose credit:
//     see [Charge] and [Reservation].
//   - C3, exact wait. After a refusal at reading t, and with no other caller, the same call is
//     granted at t+RetryAfter and refused one nanosecond earlier. This holds for Reserve too, and
//     Delay is as exact. A new key that RefuseNew refuses may be granted earlier: see Eviction.
//   - C4, refusals write nothing. Refusing a call on a key in the table only loads memory, so
//     refusals on a hot key scale with the processors.
//   - C5, time never moves back. A bucket's own time is the latest reading of its grants. An older
//     reading does not change that time and credits nothing. The call is decided on the bucket as
//     it stands, and RetryAfter counts from the caller's own reading.
//   - C6, lock-free hits. A hit is a call on a key in the table. It takes no lock, allocates
//     nothing and starts no goroutine. A stalled caller stalls no other caller. No call waits for
//     SetLimit. Reserve allocates its result, and Wait sleeps until its slot.
//   - C7, bounded. There are never more than MaxKeys keys, at any instant.
//   - C8, hostile input. A call with a cost that is zero, negative, NaN or infinite returns
//     [ErrInvalidCost] and changes nothing. A key that does not equal itself returns
//     [ErrInvalidKey]. An impossible configuration, or an impossible limit for SetLimit, returns a
//     [*ConfigError] and changes nothing. Settle accepts an actual cost of zero.
//
// Both implementations keep all clauses, except that tb/mutex does not keep C4 and C6. In tb/cas
// there are two rare exceptions. A call that moves its bucket (see move in the glossary) takes a
// lock and allocates, against C6. It may be refused after it has written, against C4. The other
// exception is also against C4, at most 64 times in the life of a limiter: a call that would put a
// bucket deeper into debt than any call before first records that debt. It may then be refused
// because another call takes its tokens.
//
// The quantum is the coarsest unit that the contract allows: 10⁻⁶ token, or Capacity·2⁻²³ tokens
// if that is more.
//
// # Reservations
//
// Reserve, Wait, and a charge with MayWait take tokens before the bucket has them. If the bucket
// cannot pay, the call puts it in debt. Then the reservation has a slot: the moment at which the
// supply has paid the debt. The slots of reservations have the order in which they took their
// tokens, and two of them never share a slot, unless tokens were given back between them. Until
// the last slot, the bucket refuses every call that may not wait, and RetryAfter is exact.
//
// C1 counts a reservation at its slot. If the bucket could pay at once, C1 counts the reservation
// as any other grant. Delay is the time from the reading to the slot, rounded up to a nanosecond:
// the tokens may be used at t+Delay, and one nanosecond earlier the ideal bucket is in debt.
//
// Reserve puts a bucket in debt by at most one capacity, and refuses a cost for which the debt
// would be deeper. RetryAfter is then the time until the same call is granted. The debt counts from
// the call's own reading, so it is deeper at a late one. Wait and MayWait may put a bucket in debt
// by two capacities or more: the implementation states its bound. In tb/cas and tb/mutex it is 2³¹
// tokens.
//
// A slot moves in two cases: Settle gives tokens back, or SetLimit changes the rate. The Delay
// that was returned stays. C1 counts the reservation at the slot that has moved, although the
// caller may use the tokens later or earlier.
//
// Cancel moves no slot of another reservation. It is the same for a reservation and a charge, with or
// without a delay, before the slot and after it: the caller says that the tokens are not used. If no
// other call has taken tokens since, it gives back all of them, and so do several if the newest is
// cancelled first. Cancel gives nothing back while a newer reservation waits: the supply of the
// cancelled slot is lost, and later calls wait behind it. Wait takes nothing if the deadline of its context is too early. So only a context that
// is cancelled while Wait sleeps costs a slot.
//
// # Settled costs
//
// Settle replaces the cost of a grant, an estimate, by the actual cost. In any interval, the
// actual tokens are at most the bound of C1, plus what the estimates in flight at its start were
// too high, plus what the estimates in flight at its end were too low, plus the Unpaid tokens in
// [Stats]. An estimate is in flight from its grant until Settle. If Settle charges more, the
// estimate is in flight until the slot of that charge.
//
// Tokens that Settle gives back pay the debt of the bucket first. Cancel does not know whether
// Settle has given tokens back since the grant. So a grant that is cancelled after such a Settle
// counts as an estimate with an actual cost of zero.
//
// # Changes of the limit
//
// SetLimit changes the limit of all keys at one clock reading. Each bucket keeps its tokens, but
// not more than the new capacity, and its debt, to 2³² tokens. It gains nothing by the change, also if it was
// idle before. A key that is not in the table starts with the new capacity.
//
// C1 holds across the change. The bound is the greatest capacity in the interval, plus what each
// limit supplies in its own time, plus the quantum of that capacity. C2 holds too, but each
// change may lose the supply of one nanosecond, and a change of the capacity a unit more. C3
// holds after the change. A RetryAfter or a Delay that was returned before is one of the old
// limit. Settle rounds both costs up to units of the limit at the settlement. So after a change
// to larger units it may charge a unit too little.
//
// A bucket whose own time is ahead of the change keeps that time, and is refilled only from then
// on. The old supply shows that time only to a unit, and it is rounded up to the last instant of
// the unit. So the bucket may lose what the new rate supplies in that time. A bucket that is ahead
// by less than a unit counts as not ahead. So the new rate supplies the time by which it is ahead,
// in addition to the bound of C1.
//
// For a call that is under way, the change may come before or after it. If the change comes
// before it and the call's reading is older, the call is decided at the time of the change, and
// RetryAfter counts from the call's own reading.
//
// # Late readings
//
// A caller reads the clock first and reaches the bucket later, so readings arrive out of order.
// C5 makes that safe: a late call is granted only what its bucket holds. There is one exception.
// A bucket knows only its own readings. If a full bucket receives a reading late by d, its key
// may be granted up to rate·d more than C1 allows.
//
// A reading far ahead of the others harms its own key. The bucket keeps that time (C5), and is
// refilled only from then on. Under [RefuseNew] the key also stays in the table until its bucket
// is full. Other keys are harmed only in a full table, in two cases:
//
//   - A new key with such a reading evicts a bucket that is full by that reading, but not yet. The
//     evicted key starts anew. No new bucket starts before the evicted one would have been full,
//     which is ahead by at most the time in which an empty bucket fills.
//   - A second such reading evicts the bucket of the first. New buckets then start at about the
//     second reading.
//
// # Eviction
//
// The table of keys is bounded (C7). To make room it evicts the bucket that is, or will soonest
// be, full. A full bucket equals a new one, so its eviction loses nothing. If no bucket that the
// table looks at is full, [Overflow] decides. [ForgiveLeast] evicts the bucket with the least
// time left to full, forgives its debt and counts it in [Stats]. [RefuseNew] refuses the new key
// until a bucket is full, and forgives no debt.
//
// An implementation may bound the number of buckets that it looks at for one new key. Then it may
// forgive a debt, or refuse a new key, although a bucket that it did not look at is full.
// tb/mutex looks at all buckets. tb/cas ranks them by stamps that it read earlier, and looks at
// the lowest first. It gives up after 1,024 buckets that were used since their stamps were read.
// Both also evict, with each new key, up to 16 buckets that have been full for a minute.
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
//   - quantum: the coarsest unit that the contract allows.
//   - instant: a clock reading in nanoseconds. Instant 0 is the epoch, long before the first
//     reading.
//   - supply S(t): the units that the rate has supplied by instant t.
//   - block: the step in which bases count, 2²⁰ units.
//   - cell: a word, a base and an owner, the state of a bucket between two moves.
//   - owner: the tier and the era of a cell.
//   - base: the supply, in blocks, from which a cell counts its bucket's time.
//   - own time: the latest reading of a bucket's grants, or its start (see Eviction) if later. In
//     debt it is the last slot.
//   - delta: the bucket's own time, in units of supply after the base.
//   - deficit: the units that a bucket lacks to be full.
//   - debt: in eviction, the deficit of a bucket, which its eviction forgives. A bucket that
//     Reserve, Wait or Settle puts in debt lacks units even to be empty. Its debt is counted from
//     empty.
//   - reservation: tokens that were taken, and the time from which they may be used.
//   - slot: the moment at which the supply has paid for a reservation. The bucket is empty then.
//   - settle: to replace the estimated cost of a grant by the actual cost.
//   - tier: the keys that share one of several limits in a table.
//   - era: the time from one change of a tier's limit to the next.
//   - move: the replacement of a bucket's cell by one with a later base, when delta outgrows its
//     bits.
//   - seal: the bit that ends a bucket's word before the bucket moves.
//   - successor: the cell that a move installs. The cell that it replaces is its predecessor.
//   - stamp: the instant at which a bucket will be full, its rank in the order of eviction.
//   - charge: a cost on one bucket, one part of [TakeAll]. Cancel gives it back.
//   - receipt: the cell and the word of a grant, which Cancel needs.
package tb
