package ratelimit

import (
	"context"
	"iter"
	"time"

	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Limiter is a token bucket for each key of type K. Use [New], [NewTiered] or [NewTokenBucket] to
// make one: the zero Limiter has no limit, and a call that needs one panics. All methods are safe
// for concurrent use. A call on a key in the table takes no lock and allocates nothing, except for
// Reserve, Reset and, rarely, a call that moves the bucket: see package tb.
//
// A key that is not in the table has a full bucket. The table holds at most MaxKeys keys, and
// evicts the bucket that is nearest to full: see [WithMaxKeys] and [WithOverflow]. A key takes
// about 90 bytes and the bytes of its text.
//
// A cost is a number of tokens above 0 and may be a fraction. It is rounded up to units of 10⁻⁶
// token for capacities up to 83, and of Capacity·2⁻²³ tokens or less for larger ones. 0.1 is
// exactly a tenth for capacities up to 8,388,607. A cost that is zero, negative, NaN or infinite
// has the error [ErrInvalidCost]. A cost above the capacity is refused, with [Never] as RetryAfter.
//
// A refused call has taken nothing. Its RetryAfter is exact: without other calls on the key, the
// same call is granted after it, and refused a nanosecond earlier.
//
// A key that does not equal itself has the error [ErrInvalidKey]: a NaN, or a key that contains
// one. Other keys cannot fail, so a caller with strings or addresses may ignore the error of Allow.
type Limiter[K comparable] cas.Limiter[K]

// TokenBucket is a Limiter with string keys.
type TokenBucket = Limiter[string]

// New returns a limiter with a bucket of the given limit for each key. It returns a *ConfigError if
// the limit or an option is out of range, or if K contains an interface. Its default clock is the
// monotonic clock of the process: [WithClock] says when that is another one.
func New[K comparable](limit Limit, opts ...Option) (*Limiter[K], error) {
	l, err := cas.New[K](limit, opts...)
	return (*Limiter[K])(l), err
}

// NewTiered returns a limiter whose keys have different limits, in one table with one bound. limits
// has the limit of each tier, at most 65,536. ChargeIn names the tier of a key. Other calls find
// the key in the tier of its bucket, and in tier 0 if it is not in the table. It returns a
// *ConfigError as New does, and if the number of limits is out of range.
func NewTiered[K comparable](limits []Limit, opts ...Option) (*Limiter[K], error) {
	l, err := cas.NewTiered[K](limits, opts...)
	return (*Limiter[K])(l), err
}

// NewTokenBucket returns a limiter with string keys, of capacity tokens a key, refilled at
// refillPerSec tokens a second: see [PerSecond]. It panics with a *ConfigError if an argument or
// option is out of range.
func NewTokenBucket(capacity int, refillPerSec float64, opts ...Option) *TokenBucket {
	return (*TokenBucket)(cas.NewTokenBucket(capacity, refillPerSec, opts...))
}

// TryTake takes one token of key's bucket, and reports whether it did. It is Allow for callers that
// need neither the wait nor an error: an invalid key is refused.
func (l *Limiter[K]) TryTake(key K) bool {
	d, _ := (*cas.Limiter[K])(l).Allow(context.Background(), key)
	return d.Allowed
}

// Allow takes one token of key's bucket, or nothing. The context is unused, because a limiter in
// memory never blocks: it is there for package tb/redis, whose limiters have the same methods.
func (l *Limiter[K]) Allow(ctx context.Context, key K) (Decision, error) {
	return (*cas.Limiter[K])(l).Allow(ctx, key)
}

// AllowN takes a cost, or nothing. The context is unused.
func (l *Limiter[K]) AllowN(ctx context.Context, key K, cost float64) (Decision, error) {
	return (*cas.Limiter[K])(l).AllowN(ctx, key, cost)
}

// AllowAt is AllowN for a caller that has already read the clock. t must be a reading of the
// limiter's clock: time.Now(), unless WithClock sets another.
func (l *Limiter[K]) AllowAt(t time.Time, key K, cost float64) (Decision, error) {
	return (*cas.Limiter[K])(l).AllowAt(t, key, cost)
}

// Wait takes a cost and sleeps until its tokens may be used. Callers are served in the order in
// which they take their tokens. If the context ends while Wait sleeps, Wait cancels the reservation
// and returns the error of the context. It starts no goroutine, and sleeps by the monotonic clock
// of the process.
//
// Wait takes nothing and returns an error at once if the cost or the key is invalid, if the context
// has ended or its deadline has passed, or if it cannot wait. The last error is a [*WaitError]: the
// deadline of the context is too near, the cost is above the capacity, the table has no room for a
// new key (RefuseNew), the bucket's debt would exceed 2³¹ tokens, which is at least two
// capacities, or the clock would end before the tokens can be used. A deadline is compared with
// time.Now(), also in a limiter with another clock.
func (l *Limiter[K]) Wait(ctx context.Context, key K, cost float64) error {
	return (*cas.Limiter[K])(l).Wait(ctx, key, cost)
}

// Reserve takes a cost now and returns when its tokens may be used. It may put the bucket into debt
// by one capacity, and refuses a deeper debt: the reservation is then not Allowed. Of two
// reservations on one key, the one that takes its tokens first may use them first. The context is
// unused. Reserve allocates the reservation.
func (l *Limiter[K]) Reserve(ctx context.Context, key K, cost float64) (Reservation, error) {
	return (*cas.Limiter[K])(l).Reserve(ctx, key, cost)
}

// Charge returns a cost on key's bucket for [AllowAll] and [TakeAll]. It takes nothing and
// allocates nothing. A charge that comes with an error is inert: see [Charge].
func (l *Limiter[K]) Charge(key K, cost float64) (KeyCharge[K], error) {
	return (*cas.Limiter[K])(l).Charge(key, cost)
}

// ChargeIn is Charge in a tier. The next Take, granted or refused, or a TakeAll that refuses it,
// moves the key to that tier, until another call moves it. The bucket keeps its tokens, but not
// more than the capacity of its new tier, and its debt. Until it moves, the old tier supplies it.
// ChargeIn returns a *ConfigError, and an inert charge, if the tier does not exist.
func (l *Limiter[K]) ChargeIn(tier int, key K, cost float64) (KeyCharge[K], error) {
	return (*cas.Limiter[K])(l).ChargeIn(tier, key, cost)
}

// Hold grants nothing of key's bucket before a time: for a ban, or for a pause that a server has
// ordered. At that time the bucket is empty, and is refilled from then on. Until then each call is
// refused with the exact RetryAfter, and tokens that are given back are lost. Of several holds the
// latest counts; one up to now does nothing. Reset ends a hold. The time may be one without a
// monotonic reading, as from a header: then it is as far from now as the wall clock says.
//
// Wait takes its tokens behind a hold, and so does a Wait that sleeps when the hold comes. Reserve
// is refused until the hold is near, and what it returned before stays. A call with a reading at
// or after the end of the hold may end it. A key that is held is in the table until its bucket is
// full, and longer than others if the table is full: many holds fill it. Hold returns
// [ErrTableFull] if the table has no room for a new key (RefuseNew). The context is unused.
func (l *Limiter[K]) Hold(ctx context.Context, key K, until time.Time) error {
	return (*cas.Limiter[K])(l).Hold(ctx, key, until)
}

// Peek returns the decision that Allow would return now. It takes nothing, adds no key and waits
// for no insert. Under RefuseNew, while another call holds the lock of the table, Peek decides on a
// new key by what the table had before that call. Then Allow may decide otherwise, or refuse the
// key for another time.
func (l *Limiter[K]) Peek(ctx context.Context, key K) (Decision, error) {
	return (*cas.Limiter[K])(l).Peek(ctx, key)
}

// Level returns how full key's bucket is now. It takes nothing, adds no key and waits for no
// insert. If the table would refuse a new key, the level has no tokens, and both of its times are
// the time until there is room.
func (l *Limiter[K]) Level(ctx context.Context, key K) (Level, error) {
	return (*cas.Limiter[K])(l).Level(ctx, key)
}

// SetLimit makes limit the limit of all keys, or of tier 0 if there are several. Its time does not
// depend on the number of keys, and no call waits for it. Each bucket keeps its tokens, but not
// more than the new capacity, and its debt. No key is granted more than the supply of both limits
// across the change. A RetryAfter or a Delay that was returned before counts by the old limit.
// SetLimit returns a *ConfigError, and changes nothing, if the limit is out of range.
//
// After a change, Cancel of an earlier grant may give nothing back. If the new limit fills buckets
// sooner, the order of eviction is not exact until the old limit would have filled them too. A
// bucket whose own time is ahead of the clock by more than a minute may be full after more than 64
// changes without a use.
//
// The limiter remembers the last 64 limits, and older ones while a bucket that was last used under
// them may lack tokens. Each takes about 230 bytes.
func (l *Limiter[K]) SetLimit(limit Limit) error { return (*cas.Limiter[K])(l).SetLimit(limit) }

// Limit returns the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) Limit() Limit { return (*cas.Limiter[K])(l).Limit() }

// SetTier is SetLimit for a tier. It returns a *ConfigError if the tier does not exist.
func (l *Limiter[K]) SetTier(tier int, limit Limit) error {
	return (*cas.Limiter[K])(l).SetTier(tier, limit)
}

// Tiers returns the limits of all tiers. A limiter of New has one tier.
func (l *Limiter[K]) Tiers() []Limit { return (*cas.Limiter[K])(l).Tiers() }

// Reset fills key's bucket, if the table has it, and ends a hold. In an interval that contains the
// reset, the key may be granted more by Capacity and by the debt of its bucket. The key keeps its
// tier and, until it is evicted, its place in the table. Cancel of an earlier grant gives nothing
// back. Reset is as fast as a call that moves its bucket, and new keys do not wait for it.
func (l *Limiter[K]) Reset(key K) { (*cas.Limiter[K])(l).Reset(key) }

// Len returns the number of keys in the table, never more than MaxKeys. It waits for inserts.
func (l *Limiter[K]) Len() int { return (*cas.Limiter[K])(l).Len() }

// Stats returns the number of keys and the cost of eviction so far. It waits for inserts.
func (l *Limiter[K]) Stats() Stats { return (*cas.Limiter[K])(l).Stats() }

// Snapshot returns an iterator over the keys of the table and the states of their buckets, for
// Restore. The bucket that will be full last comes first. No call on a key in the table waits for
// it; a new key may wait while a few thousand keys are listed. Each state is read when it is
// yielded. A key that comes or goes meanwhile may be missing.
func (l *Limiter[K]) Snapshot() iter.Seq2[K, State] { return (*cas.Limiter[K])(l).Snapshot() }

// Restore gives buckets the states that Snapshot has yielded, in this process or in another. Each
// bucket gets what the present rate has supplied since, by the wall clock; a time that is later
// than now counts as now. A bucket that has fewer tokens already keeps them, and a full one is not
// stored. If the limit has changed, a bucket keeps its tokens, but not more than the capacity, and
// its debt. Restore returns an error, and changes nothing, if a state or a key is invalid, or if
// more buckets are not full than the table can hold. Call it before the limiter is used.
func (l *Limiter[K]) Restore(states iter.Seq2[K, State]) error {
	return (*cas.Limiter[K])(l).Restore(states)
}
