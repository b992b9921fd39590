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
//     and refusals loses a fraction. Cancel may: see [Charge] and [Reservation].
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
//   - C7, bounded. There are never more than MaxKeys keys, at any instant. In tb/cas up to 2,048
//     evicted ones may keep their memory.
//   - C8, hostile input. A call with a cost that is zero, negative, NaN or infinite returns
//     [ErrInvalidCost] and changes nothing. A key that does not equal itself returns
//     [ErrInvalidKey]. An impossible configuration, or an impossible limit for SetLimit, returns a
//     [*ConfigError] and changes nothing. A charge that comes with an error is inert: each Take,
//     Peek and TakeAll with it returns that error and changes nothing. Settle accepts an actual
//     cost of zero.
//
// Package tb/cas keeps all clauses, but a call that moves its bucket (see the glossary) takes a
// lock and allocates, against C6, and may be refused after it has written, against C4. So may a
// call that would put a bucket deeper into debt than any call before, at most 64 times in the life
// of a limiter. Package tb/mutex does not keep C4 and C6.
//
// # Reservations
//
// Reserve, Wait, and a charge with MayWait take tokens before the bucket has them. If the bucket
// cannot pay, the call puts it in debt. Then the reservation has a slot: the moment at which the
// supply has paid the debt. The slots of reservations have the order in which they took their
// tokens, and two of them never share a slot, unless tokens were given back or the bucket was
// reset between them. Until the last slot, the bucket refuses every call that may not wait, and
// RetryAfter is exact. A Reset ends the debt, and the Delay that was returned before stays.
//
// C1 counts a reservation at its slot. If the bucket could pay at once, C1 counts the reservation
// as any other grant. Delay is the time from the reading to the slot, rounded up to a nanosecond:
// the tokens may be used at t+Delay, and one nanosecond earlier the ideal bucket is in debt.
//
// Reserve puts a bucket in debt by at most one capacity, and Wait and MayWait by a bound that the
// implementation states: 2³¹ tokens in tb/cas and tb/mutex. A call for which the debt would be
// deeper is refused, and RetryAfter is the time until it is granted. The debt counts from the
// call's own reading, so it is deeper at a late one.
//
// A slot moves if Settle gives tokens back, or SetLimit changes the rate. The Delay that was
// returned stays, but C1 counts the reservation at the slot that has moved.
//
// Cancel is for tokens that are not used. It is the same for a reservation and a charge, before the
// slot and after it, and moves no slot of another reservation. If no other call has taken tokens
// since, it gives back all of them, and so do several that have slots if the newest is cancelled
// first. While a newer reservation waits, it gives nothing back: the supply of the cancelled slot
// is lost. Wait takes nothing if the deadline of its context is too early. So only a context that
// is cancelled while Wait sleeps costs a slot. After a Reset, Cancel of an earlier grant gives
// nothing back in tb/cas and tb/mutex.
//
// # Holds
//
// Hold grants nothing of a bucket before a time: for a ban, or a pause that a server has ordered.
// At a reading before that time, the bucket decides as an empty one whose own time it is. At that
// time it is empty, and is refilled from then on. The first call at or after it that changes the
// bucket ends the hold, and so does a change of the limit: after them, an older reading meets the
// bucket as it stands (C5).
//
// The tokens of the bucket are lost. The debt that it will have when the hold ends stays behind the
// hold, to 2³² tokens. What is given back during a hold pays that debt, or is lost, and Cancel of a
// grant from before gives nothing back. Of two holds the later one counts. A hold up to the
// reading, or to the last change of the limit, does nothing. None lasts longer than the clock. If
// the own time of a bucket is a later reading, the hold lasts until then, because the bucket has
// had the supply.
//
// A call that may wait has its slot behind the hold. Its bound of debt counts from its reading, so
// Reserve is refused until the hold is near. Each such call moves the bucket, so only the newest
// can give back all. A Wait that sleeps when a hold comes takes its cost anew behind it; a Delay
// that was returned stays. What Settle charges is paid behind the hold. A change of the limit or
// the tier moves neither the time of a hold nor the tokens of the debt behind it: until the hold
// ends, the bound of C1 counts what the old limit supplies. Reset ends a hold.
//
// The eviction of a held bucket ends the hold, and forgives the capacity and the debt behind it. If
// RefuseNew has no room to hold a new key, Hold returns [ErrTableFull].
//
// HoldOnRefusal of a charge lets Take hold the bucket for a time from its reading if it refuses,
// against C4. RetryAfter is then the time until the same call is granted behind the hold. In
// TakeAll each charge whose own bucket lacks the cost holds it, and the others take nothing.
// Nothing is held by Peek, for a cost that can never be granted, if the table is full, or if the
// bucket is held already, at a reading before the end of that hold.
//
// Keep of a charge takes tokens only if k tokens are left, so that others may have them. It counts
// as a cost of k more, each rounded up to units, of which only the cost is taken: if the sum is
// above the capacity, it is refused with Never. Remaining, and the Level of the charge, are what it
// may take: k tokens less, at least 0, and NextToken is Never if no whole token more can come.
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
// counts as an estimate with an actual cost of zero. After a Settle that ends the debt of a bucket,
// Cancel of another grant may give back less than all, also if no other call took tokens since.
//
// # Changes of the limit
//
// SetLimit changes the limit of all keys at one clock reading. Each bucket keeps its tokens, but
// not more than the new capacity, and its debt, to 2³² tokens. It gains nothing by the change. A
// key that is not in the table starts with the new capacity.
//
// C1 holds across the change. The bound is the greatest capacity in the interval, plus what each
// limit supplies in its own time, plus the quantum of that capacity. C2 holds too, but each
// change may lose the supply of one nanosecond, and a change of the capacity a unit more. C3
// holds after the change. A RetryAfter or a Delay that was returned before is one of the old
// limit. Settle rounds both costs up to units of the limit at the settlement. So after a change
// to larger units it may charge a unit too little.
//
// A bucket whose own time is ahead of the change keeps that time, rounded up to the last instant
// of a unit of the old supply. If it is ahead by less than a unit, it counts as not ahead, and what
// the new rate supplies in that time is added to the bound of C1. The old rate has supplied the
// bucket until its own time, also if the grant that was ahead is cancelled. So after the Cancel it
// may be fuller than without that grant.
//
// For a call that is under way, the change may come before or after it. If the change comes
// before it and the call's reading is older, the call is decided at the time of the change, and
// RetryAfter counts from the call's own reading.
//
// # Late readings
//
// A caller reads the clock first and reaches the bucket later, so readings arrive out of order.
// C5 makes that safe: a late call is granted only what its bucket holds. But a bucket knows only
// its own readings. If it is full and receives a reading late by d, its key may be granted up to
// rate·d more than C1 allows.
//
// A reading far ahead of the others harms its own key: the bucket keeps that time (C5), is refilled
// only from then on, and stays in the table longer. SetLimit with such a reading harms all keys
// alike. A new key with such a reading evicts buckets that are full by it, but not yet: one of a
// full table, and up to 16 that have been full for a minute by it. Such a key starts anew, and no
// new bucket starts before the evicted ones would have been full. If one had such a reading too,
// this is about as far ahead.
//
// # Eviction
//
// The table of keys is bounded (C7). To make room it evicts the bucket that is, or will soonest
// be, full. A full bucket equals a new one, so its eviction loses nothing. If no bucket that the
// table looks at is full, [Overflow] decides. [ForgiveLeast] evicts the bucket with the least
// time left to full, forgives its debt and counts it in [Stats]. [RefuseNew] refuses the new key
// until a bucket is full, and forgives no debt.
//
// An implementation may bound the number of buckets that it looks at for one new key, as tb/cas
// does. Then it may forgive a debt, or refuse a new key, although a bucket that it did not look at
// is full. Each new key also evicts up to 16 buckets that have been full for a minute.
//
// A new bucket starts full, and no earlier than the latest instant at which an evicted bucket of
// any key had become full, or at which a debt was forgiven. So a key that was evicted and comes
// back with a late reading is not credited the same time twice.
//
// # Glossary
//
//   - unit: the fixed-point fraction of a token, 10⁰ to 10⁻⁶ of it.
//   - quantum: the coarsest unit that the contract allows, 10⁻⁶ token, or Capacity·2⁻²³ tokens if
//     that is more.
//   - instant: a clock reading, in nanoseconds since an epoch long before the first one.
//   - supply S(t): the units that the rate has supplied by instant t.
//   - own time: the latest reading of a bucket's grants, or its start (see Eviction) if later. In
//     debt it is the last slot. A Reset makes its own reading the start, even an earlier one.
//   - deficit: the units that a bucket lacks to be full.
//   - debt: the units that a bucket lacks to be empty. In eviction it is the deficit, which the
//     eviction forgives.
//   - reservation: tokens that were taken, and the time from which they may be used.
//   - slot: the moment at which the supply has paid for a reservation. The bucket is empty then.
//   - tier: the keys that share one of several limits in a table.
//   - move: to allocate a bucket again, after a long time, a change of the limit or tier, for a
//     Reset, or by a change of a held bucket.
package tb
