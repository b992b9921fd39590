package redis

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Limiter is a token bucket for each key, in a Redis server that all processes share. It implements
// tb.Limiter. Use New to make one. All methods are safe for concurrent use.
//
// Most callers want Allow. Allow, AllowN and AllowCost take tokens, and so does Decide, which also
// returns what decided. Peek and Level take nothing. Reset, Stats and Close are for operators.
//
// If the server does not decide a call that takes tokens, the failure policy does, and the error is
// nil. Other calls return an *Error then. All calls return ErrClosed after Close.
type Limiter struct {
	settings
	client   rueidis.Client
	layout   layout
	start    time.Time // of local times
	cluster  bool
	nodes    [ranges]node // without a cluster, only the first one
	trips    trips
	denials  denials
	share    *cas.Limiter[string] // nil without a LocalShare
	leases   *leases              // nil without leases
	inFlight chan struct{}        // has an element for each key that has a trip under way
	closed   atomic.Bool
	closing  sync.Once
	counts   counts
}

var _ tb.Limiter = (*Limiter)(nil)

// New returns a limiter with a bucket of the given limit for each key. It sends nothing to Redis.
// It returns a *tb.ConfigError if the limit or an option is out of range. A rate of N/D units a
// microsecond, in lowest terms, must have N and D below 2⁴⁸. This holds if Tokens is at most
// 281,000,000 and Per is below 78 hours, or a whole number of microseconds below 8.9 years.
//
// The limiter does not close the client.
func New(client rueidis.Client, limit tb.Limit, opts ...Option) (*Limiter, error) {
	if client == nil {
		return nil, &tb.ConfigError{Field: "client", Value: "nil", Range: "a client"}
	}
	m, err := newLayout(limit)
	if err != nil {
		return nil, err
	}
	s, err := apply(opts)
	if err != nil {
		return nil, err
	}
	share, err := s.policy.share(limit)
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		settings: s, client: client, layout: m, start: time.Now(), share: share,
		inFlight: make(chan struct{}, maxInFlight), counts: newCounts(),
		cluster: client.Mode() == rueidis.ClientModeCluster,
	}
	if !s.alone {
		l.trips.queues = make(map[string]*queue)
		l.trips.shared = !l.cluster
	}
	l.denials.Init(maxDenials, false, &l.denials)
	l.denials.seed = maphash.MakeSeed()
	l.leases = newLeases(l, s.lease)
	return l, nil
}

// Allow takes one token of key's bucket.
func (l *Limiter) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return l.take(ctx, key, l.layout.scale)
}

// AllowN takes n tokens, or none. It returns tb.ErrInvalidCost if n is not positive.
func (l *Limiter) AllowN(ctx context.Context, key string, n int) (tb.Decision, error) {
	if n <= 0 {
		return tb.Decision{}, tb.ErrInvalidCost
	}
	return l.take(ctx, key, l.layout.unitsOf(n))
}

// AllowCost takes a decimal number of tokens, or none. It rounds the cost up to units of 10⁻⁶
// token for capacities up to 83, and of Capacity·2⁻²³ tokens or less for larger ones. It returns
// tb.ErrInvalidCost if cost is zero, negative, NaN or infinite.
func (l *Limiter) AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error) {
	if !(cost > 0 && cost <= math.MaxFloat64) { // NaN fails both
		return tb.Decision{}, tb.ErrInvalidCost
	}
	return l.take(ctx, key, l.layout.unitsOfCost(cost))
}

// Decide is AllowCost, and also returns what decided. If the failure policy did, it returns why.
func (l *Limiter) Decide(ctx context.Context, key string, cost float64) (Outcome, error) {
	if !(cost > 0 && cost <= math.MaxFloat64) { // NaN fails both
		return Outcome{}, tb.ErrInvalidCost
	}
	r, err := l.decide(ctx, key, l.layout.unitsOfCost(cost))
	return r.Outcome, err
}

// Peek returns the decision that Allow would return now. It takes nothing.
func (l *Limiter) Peek(ctx context.Context, key string) (tb.Decision, error) {
	s, err := l.look(ctx, key)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.layout.take(&s, l.layout.scale), nil
}

// Level returns how full key's bucket is now. It takes nothing.
func (l *Limiter) Level(ctx context.Context, key string) (tb.Level, error) {
	s, err := l.look(ctx, key)
	if err != nil {
		return tb.Level{}, err
	}
	return l.layout.level(&s), nil
}

// Reset fills key's bucket. In an interval that contains the reset, the key may be granted up to
// Capacity tokens more. A Reset that returned an error may still happen.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if l.share != nil {
		l.share.Reset(key)
	}
	err := l.guard(key, func() error {
		return l.send(ctx, func(int64) (err error) {
			l.denials.reset(func() { err = l.remove(key) }, key)
			return err
		})
	})
	l.leases.forget(key) // after the removal, because a trip before it may bring a lease
	return l.counts.failed(err)
}

// Close gives back what the leases have left, and makes all further calls fail with ErrClosed. It
// waits for the commands that are under way, as long as the client waits for them.
func (l *Limiter) Close() {
	l.closing.Do(func() {
		l.leases.close()
		l.closed.Store(true)
		for range maxInFlight {
			l.inFlight <- struct{}{}
		}
		for range maxInFlight {
			<-l.inFlight
		}
	})
}

// take takes units of key's bucket, or none.
func (l *Limiter) take(ctx context.Context, key string, units uint64) (tb.Decision, error) {
	r, err := l.decide(ctx, key, units)
	return r.Decision, err
}

// result is an outcome, and what a charge needs to know of it.
type result struct {
	Outcome
	state state  // the bucket after the call, unless the failure policy decided
	from  *claim // that had the tokens, or nil
}

// decide is take, and decides by the failure policy if the server does not.
func (l *Limiter) decide(ctx context.Context, key string, units uint64) (r result, err error) {
	if l.leases != nil {
		r, err = l.leases.take(ctx, key, units)
	} else {
		r, err = l.serve(ctx, key, units)
	}
	if err != nil {
		r.Outcome, err = l.degrade(ctx, key, units, err)
		return r, err
	}
	if r.Allowed {
		l.warm(ctx, key, units)
	}
	return r, nil
}

// serve is take without the failure policy and leases.
func (l *Limiter) serve(ctx context.Context, key string, units uint64) (r result, err error) {
	local := false
	if r.state, local, err = l.ask(ctx, key, units); err != nil {
		return r, l.counts.failed(err)
	}
	r.Decision = l.layout.take(&r.state, units)
	if local {
		r.By = DenialCache
		l.counts.denied.Inc()
	} else {
		l.counts.decided(r.Allowed)
	}
	return r, nil
}

// ask takes units of key's bucket, or none, and returns the bucket before. local says that the
// server was not asked, because it would refuse.
func (l *Limiter) ask(
	ctx context.Context, key string, units uint64,
) (before state, local bool, err error) {
	if s, ok := l.denied(key, units); ok {
		return s, true, l.admit(ctx)
	}
	before, err = l.call(ctx, key, units)
	return before, false, err
}

// look returns key's bucket. It asks for a cost that no bucket can pay.
func (l *Limiter) look(ctx context.Context, key string) (state, error) {
	s, err := l.call(ctx, key, l.layout.impossible())
	return s, l.counts.failed(err)
}
