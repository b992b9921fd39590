package redis

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Limiter is a token bucket for each key, in a Redis server that all processes share. It implements
// tb.Limiter. Use New to make one. All methods are safe for concurrent use.
//
// If the server does not decide a call that takes tokens, the failure policy does. The error is
// then nil, except under Fail and for a Wait that the policy refuses. Other calls return an *Error
// then. All calls return ErrClosed after Close.
type Limiter struct {
	*shared
	layout atomic.Pointer[layout]
	share  *cas.Limiter[string] // nil without a LocalShare
}

var _ tb.Limiter = (*Limiter)(nil)

type shared struct {
	settings
	client  rueidis.Client
	script  *script
	pending pending
	denials denials
	leases  leases
	closed  atomic.Bool
	counts  counts
}

// New returns a limiter with a bucket of the given limit for each key. It sends nothing to Redis.
// It returns a *tb.ConfigError if the limit or an option is out of range. A rate of N/D units a
// microsecond, in lowest terms, must have N and D below 2⁴⁸. This holds if Tokens is at most
// 281,000 and Per is below 78 hours. It also holds if Tokens is at most 281,000,000 and Per is a
// whole number of microseconds below 8.9 years.
//
// The limiter does not close the client.
func New(client rueidis.Client, limit tb.Limit, opts ...Option) (*Limiter, error) {
	if client == nil {
		return nil, &tb.ConfigError{Field: "client", Value: "nil", Range: "a client"}
	}
	s, err := apply(opts)
	if err != nil {
		return nil, err
	}
	x := &shared{settings: s, client: client, script: buckets}
	x.counts.denied = xsync.NewCounter()
	x.pending.under, x.pending.blocked = make(map[*node]int), make(map[*node][]*queue)
	x.pending.queues = make(map[string]*queue)
	x.denials.init()
	x.leases.init(x, s.lease)
	return (&Limiter{shared: x}).Tier(limit)
}

// limits returns a limit for the server and for the local share, which is zero without one.
func (l *shared) limits(limit tb.Limit) (m *layout, part tb.Limit, err error) {
	if m, err = newLayout(limit, l.lease); err == nil && l.policy.isShare() {
		part, err = l.policy.part(limit)
	}
	return m, part, err
}

// Tier returns a limiter that decides calls on the same buckets by another limit: the limit is the
// one that the call brings, as after SetLimit. Settle is such a call, too, so a late one takes the
// bucket back to the limit of its limiter. All tiers have the commands under way, the breaker, the
// statistics and the leases in common. Close closes all of them. A local share is of one tier.
//
// It returns a *tb.ConfigError if the limit is out of range.
func (l *Limiter) Tier(limit tb.Limit) (*Limiter, error) {
	m, part, err := l.limits(limit)
	if err != nil {
		return nil, err
	}
	tier := &Limiter{shared: l.shared}
	tier.layout.Store(m)
	if l.policy.isShare() {
		tier.share, err = cas.New[string](part)
	}
	return tier, err
}

// SetLimit makes limit the limit of the calls of this limiter that come next. A bucket is converted
// by the first call that takes tokens or is refused: it keeps its tokens, but not more than
// the new capacity, and its debt. A bucket without a key in Redis is full under the new limit too.
// The calls of other processes convert the bucket to their own limits.
//
// SetLimit sends nothing to Redis. It returns a *tb.ConfigError if the limit is out of range, and
// changes nothing.
func (l *Limiter) SetLimit(limit tb.Limit) error {
	m, part, err := l.limits(limit)
	if err == nil && l.share != nil {
		err = l.share.SetLimit(part)
	}
	if err == nil {
		l.layout.Store(m)
	}
	return err
}

// Limit returns the limit of the calls of this limiter.
func (l *Limiter) Limit() tb.Limit { return l.layout.Load().limit }

// Allow takes one token of key's bucket.
func (l *Limiter) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return l.AllowN(ctx, key, 1)
}

// AllowN takes a number of tokens, or none. The number may be a fraction: it is rounded up to units
// of 10⁻⁶ token for capacities up to 83, and of Capacity·2⁻²³ tokens or less for larger ones. It
// returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite.
func (l *Limiter) AllowN(ctx context.Context, key string, cost float64) (tb.Decision, error) {
	o, err := l.Decide(ctx, key, cost)
	return o.Decision, err
}

// Decide is AllowN, and also returns what decided. If the failure policy did, it returns why.
func (l *Limiter) Decide(ctx context.Context, key string, cost float64) (Outcome, error) {
	if err := check.Cost(cost); err != nil {
		return Outcome{}, err
	}
	m := l.layout.Load()
	var r result
	err := l.decide(ctx, m, key, &item{units: m.unitsOf(cost)}, &r)
	return r.Outcome, err
}

// Peek returns the decision that Allow would return now. It takes nothing. If it refuses, it
// converts a bucket of another limit, as Allow does.
func (l *Limiter) Peek(ctx context.Context, key string) (tb.Decision, error) {
	m := l.layout.Load()
	it := item{units: m.scale}
	s, err := l.look(ctx, m, key, it)
	if err != nil {
		return tb.Decision{}, err
	}
	return m.apply(&s, &it).Decision, nil
}

// Level returns how full key's bucket is now. It takes nothing, and converts no bucket.
func (l *Limiter) Level(ctx context.Context, key string) (tb.Level, error) {
	m := l.layout.Load()
	s, err := l.look(ctx, m, key, item{kind: kindLook})
	if err != nil {
		return tb.Level{}, err
	}
	return m.level(&s, 0), nil
}

// Reset fills key's bucket. In an interval that contains the reset, the key may be granted up to
// Capacity tokens more, and the debt of its bucket. A Reset that returned an error may still
// happen.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if l.share != nil {
		l.share.Reset(key)
	}
	_, err := l.call(ctx, l.layout.Load(), key, item{kind: kindReset})
	l.leases.forget(key) // after the reset, because a command before it may bring a lease
	return l.undecided(err)
}

// Hold grants nothing of key's bucket before a time: see tb. Calls of other processes that a lease
// pays, and those under way, may be granted meanwhile: docs/redis.md has the times. Clients of a
// version without Hold take a held bucket for a value that is not a bucket.
//
// The time is sent as a duration from now, rounded up to microseconds, and ends in the year 2255 at
// the latest. The call has a deadline, as one that takes tokens. A Hold that returned an error may
// still happen until then.
func (l *Limiter) Hold(ctx context.Context, key string, until time.Time) error {
	left := time.Until(until)
	if left <= 0 {
		return l.admit(ctx)
	}
	if l.share != nil {
		_ = l.share.Hold(ctx, key, until)
	}
	it := item{kind: kindHold, until: l.local() + int64((left-1)/time.Microsecond) + 1}
	_, err := l.call(ctx, l.layout.Load(), key, it)
	return l.undecided(err)
}

// Close gives back what the leases have left, and makes all further calls fail with ErrClosed. It
// waits for the commands that are under way, as long as the client waits for them.
func (l *Limiter) Close() {
	l.leases.closing.Do(l.leases.close)
	l.pending.mu.Lock() // a call that has found the limiter open has joined
	l.closed.Store(true)
	l.pending.mu.Unlock()
	l.pending.ended.Wait()
}

// result is an outcome, and what a charge needs to know of it. It is large, so those who decide get
// a zero result to fill in.
type result struct {
	Outcome
	delay  time.Duration  // of a reservation, also if it was refused
	before state          // the bucket before the call, if the server has decided it
	after  state          // the bucket as it is known after the call, or zero
	from   *claim         // that had the tokens, or nil
	share  tb.Reservation // what the local share was charged, or nothing
}

// fill makes r the result of an item on a bucket that the server has shown.
func (r *result) fill(m *layout, before state, it *item) {
	r.before, r.after = before, before
	o := m.apply(&r.after, it)
	r.Decision, r.delay = o.Decision, o.delay
}

// decide takes units, or none, and decides by the failure policy if the server does not.
func (l *Limiter) decide(
	ctx context.Context, m *layout, key string, it *item, r *result,
) (err error) {
	if m.leased && it.kind == kindTake && len(key) <= longest { // the leases keep their keys
		err = l.leases.take(ctx, m, key, it, r)
	} else {
		err = l.serve(ctx, m, key, it, r)
	}
	if err != nil {
		return l.degrade(m, key, it, err, r)
	}
	l.counts.decided(r.Outcome)
	l.warm(ctx, m, key, it.units, r)
	return nil
}

func (l *shared) serve(
	ctx context.Context, m *layout, key string, it *item, r *result,
) error {
	if l.refuse(ctx, m, key, it, r) {
		return nil
	}
	before, err := l.call(ctx, m, key, *it)
	if err == nil {
		r.fill(m, before, it)
	}
	return err
}

// refuse refuses an item, and returns true, if it is known that the bucket cannot pay for it.
func (l *shared) refuse(
	ctx context.Context, m *layout, key string, it *item, r *result,
) bool {
	s, ok := l.denied(m, key, it)
	if !ok || l.admit(ctx) != nil {
		return false
	}
	r.fill(m, s, it)
	r.By = ByDenialCache
	return true
}

// look returns key's bucket, on which the item will be tried. If that cannot pay, it is converted
// to m: otherwise the old rate would fill it as long as all calls are looks.
func (l *shared) look(ctx context.Context, m *layout, key string, it item) (state, error) {
	if s, ok := l.denied(m, key, &it); ok && l.admit(ctx) == nil {
		return s, nil
	}
	s, err := l.call(ctx, m, key, item{kind: kindLook, units: it.needs()})
	return s, l.undecided(err)
}
