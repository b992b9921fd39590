// Package rate is a drop-in replacement for golang.org/x/time/rate over the bucket of tb/cas. It
// has the same identifiers, so that a program changes only the import. Allow, AllowN and a Wait
// without a delay take no lock and allocate nothing, and Reserve allocates its result.
//
// It differs from version 0.16.0 in this:
//
//   - A call with an earlier time than a call before it credits nothing (golang.org/issue/71360 and
//     76037), unless it changes a limit or a burst from or to 0, Inf or more than the bounds below.
//     Nor does one more than 292 years after the first, unless that is time.Time{}.
//   - Cancel gives nothing back while a newer reservation waits. It gives nothing back twice, and
//     mostly nothing after a change of the limiter.
//   - A reservation is not OK if the debt would be above 2³¹ tokens or, unless the limit is 0, paid
//     after 292 years.
//   - Tokens are counted in millionths, or in 2⁻²³ of the burst if that is more. So a token may
//     come early by such a unit.
//   - A burst above 2³⁰, and a limit above 10⁹ a second, are kept to a millionth of the burst. With
//     such a burst, Cancel gives nothing back. A limit above 10⁹ bursts a second counts as that.
//   - A limit below one event in 292 years, and one that is not a number, count as 0. An infinite
//     one counts as Inf.
//   - A wait is rounded up to a nanosecond. x/time/rate rounds it down, even to no wait at all.
//
// So six of its tests fail here: benchmarks/compare/xtime names them, and runs the others.
//
// New programs may prefer package ratelimit: a limiter for many keys, and refusals with a wait.
package rate

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Limit is a number of events a second. A Limit of 0 or less supplies no tokens.
type Limit float64

// Inf is the Limit that allows all events, whatever the burst is.
const Inf = Limit(math.MaxFloat64)

// InfDuration is the Delay of a Reservation that is not OK.
const InfDuration = time.Duration(math.MaxInt64)

// Every returns the Limit of one event in each interval, and Inf if the interval is not positive.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return 1 / Limit(interval.Seconds())
}

// durationFromTokens returns the time in which limit supplies tokens, or InfDuration.
func (limit Limit) durationFromTokens(tokens float64) time.Duration {
	d := tokens / float64(limit) * float64(time.Second)
	if limit > 0 && d < math.MaxInt64 {
		return time.Duration(d)
	}
	return InfDuration
}

// Limiter is a token bucket that is full at first. It holds up to a burst of tokens, and is
// refilled at a Limit. The zero Limiter has a limit and a burst of 0, and rejects all events. All
// methods are safe for concurrent use. A Limiter must not be copied after its first use.
//
//   - Allow and AllowN take tokens, or return false.
//   - Wait and WaitN sleep until they may use their tokens.
//   - Reserve and ReserveN take tokens, and return how long to wait before they may be used.
//   - SetLimit and SetBurst change the limiter. The bucket keeps its tokens and its debt.
//
// A method with a time uses it in place of time.Now(). A number of 0 events is allowed unless the
// bucket is in debt, and a negative number gives tokens back.
type Limiter struct {
	limit Limit // of the first state, and burst too: unused limiters that agree are deeply equal
	burst int
	mu    sync.Mutex            // of changes, Cancel, and calls with a burst above tb.MaxCapacity
	state atomic.Pointer[state] // nil before the first use
}

// state is a limit and a burst, and what keeps their tokens. It is immutable, but for paid.
type state struct {
	limit  Limit
	burst  int
	bucket *cas.Bucket
	plain  bool // the bucket has the limit and the burst as they are, and a clock for now and t

	scale float64   // tokens of the bucket for a token of the limiter
	still bool      // the limit supplies nothing, or all at once: the bucket is read as of since
	since time.Time // reading at which the bucket was made, the first one of its clock
	paid  float64   // part of a token of the bucket, taken and not yet used; under Limiter.mu
}

// NewLimiter returns a Limiter with a full bucket of b tokens, refilled with r tokens a second.
func NewLimiter(r Limit, b int) *Limiter { return &Limiter{limit: r, burst: b} }

// current returns the state, whose bucket has a clock that goes on at t.
func (lim *Limiter) current(t time.Time) *state {
	if s := lim.state.Load(); s != nil && t.Sub(s.since) < math.MaxInt64 {
		return s
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.locked(t)
}

// locked is current for a caller that has the lock.
func (lim *Limiter) locked(t time.Time) *state {
	s, next := lim.state.Load(), &state{limit: lim.limit, burst: lim.burst}
	tokens := float64(next.burst)
	switch {
	case s != nil && t.Sub(s.since) < math.MaxInt64:
		return s
	case s != nil: // the clock of its bucket has ended
		next.limit, next.burst, tokens = s.limit, s.burst, s.tokensAt(t)
	}
	next.fill(next.bucketLimit(), t, tokens)
	lim.state.Store(next)
	return next
}

// bucketLimit returns the limit of the bucket for s, and sets how s uses the bucket. The tokens of
// the bucket are larger than the tokens of the limiter if the limit or the burst is out of its
// range. If the limit supplies less than the bucket can, or everything at once, the clock of the
// bucket stands still.
func (s *state) bucketLimit() tb.Limit {
	capacity, rate := max(s.burst, 1), float64(s.limit)
	if s.limit >= Inf {
		rate = 0
	}
	s.scale = 1
	if k := max(rate/1e9, float64(capacity)/tb.MaxCapacity); k > 1 {
		whole := max(1, math.Floor(float64(capacity)/k))
		s.scale = math.Nextafter(whole/float64(capacity), 0) // so that a burst costs whole at most
		capacity, rate = int(whole), min(rate*s.scale, 1e9)
	}
	l, err := tb.LimitPerSecond(capacity, rate)
	if s.still = err != nil; s.still {
		l = tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Second}
	}
	s.plain = !s.still && s.scale == 1 && s.burst > 0
	return l
}

// fill makes a bucket that has a number of tokens at t.
func (s *state) fill(l tb.Limit, t time.Time, tokens float64) {
	s.bucket, _ = cas.NewBucketAt(t, l) // no error: bucketLimit has validated l
	s.since, s.plain = t, s.plain && time.Until(t).Abs() < 1<<62
	if tokens < 0 { // AddAt makes no debt that is paid after the end of the clock; SetLimitAt does
		_ = s.bucket.SetLimitAt(t, tb.Limit{Capacity: l.Capacity, Tokens: 1, Per: 1})
	}
	s.bucket.AddAt(t, (tokens-float64(max(s.burst, 1)))*s.scale)
	_ = s.bucket.SetLimitAt(t, l)
}

// reading returns the reading of the bucket at t.
func (s *state) reading(t time.Time) time.Time {
	if s.still {
		return s.since
	}
	return t
}

// tokensAt returns the tokens at t.
func (s *state) tokensAt(t time.Time) float64 {
	if s.limit >= Inf && t.After(s.since) {
		return float64(s.burst)
	}
	return min(s.bucket.LevelAt(s.reading(t)).Tokens/s.scale, float64(s.burst))
}

// Limit returns the limit.
func (lim *Limiter) Limit() Limit {
	if s := lim.state.Load(); s != nil {
		return s.limit
	}
	return lim.limit
}

// Burst returns the most tokens that the bucket holds, which is the most that one call can take.
func (lim *Limiter) Burst() int {
	if s := lim.state.Load(); s != nil {
		return s.burst
	}
	return lim.burst
}

// Tokens returns the tokens that the bucket has now, negative in debt.
func (lim *Limiter) Tokens() float64 { return lim.TokensAt(time.Now()) }

// TokensAt is Tokens at t.
func (lim *Limiter) TokensAt(t time.Time) float64 { return lim.current(t).tokensAt(t) }

// SetLimit changes the limit now.
func (lim *Limiter) SetLimit(newLimit Limit) { lim.SetLimitAt(time.Now(), newLimit) }

// SetLimitAt changes the limit at t. The times of earlier reservations stay.
func (lim *Limiter) SetLimitAt(t time.Time, newLimit Limit) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	s := lim.locked(t)
	lim.change(t, s, &state{limit: newLimit, burst: s.burst})
}

// SetBurst changes the burst now.
func (lim *Limiter) SetBurst(newBurst int) { lim.SetBurstAt(time.Now(), newBurst) }

// SetBurstAt changes the burst at t. The times of earlier reservations stay.
func (lim *Limiter) SetBurstAt(t time.Time, newBurst int) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	s := lim.locked(t)
	lim.change(t, s, &state{limit: s.limit, burst: newBurst})
}

// change makes next the state at t. The bucket stays if both states have it as it is. Otherwise a
// call that is under way may still use the old one.
func (lim *Limiter) change(t time.Time, s, next *state) {
	l := next.bucketLimit()
	if s.plain && next.plain {
		next.bucket, next.since = s.bucket, s.since
		_ = s.bucket.SetLimitAt(t, l) // no error: bucketLimit has validated l
	} else {
		next.fill(l, t, min(s.tokensAt(t), float64(next.burst)))
	}
	lim.state.Store(next)
}

// Allow reports whether an event may happen now, and takes its token.
func (lim *Limiter) Allow() bool {
	if s := lim.state.Load(); s != nil && s.plain {
		return s.bucket.Allow().Allowed
	}
	return lim.AllowN(time.Now(), 1)
}

// AllowN reports whether n events may happen at t, and takes their tokens.
func (lim *Limiter) AllowN(t time.Time, n int) bool {
	if s := lim.state.Load(); s != nil && s.plain && n > 0 {
		d, _ := s.bucket.AllowAt(t, float64(n)) // no error: n is positive
		return d.Allowed
	}
	return lim.reserveN(t, n, 0).ok
}

// Reserve is ReserveN of one event, now.
func (lim *Limiter) Reserve() *Reservation { return lim.ReserveN(time.Now(), 1) }

// ReserveN takes n tokens at t, also in advance. The Reservation is not OK if n is above the burst.
func (lim *Limiter) ReserveN(t time.Time, n int) *Reservation {
	return new(Reservation).reserve(lim, t, n, InfDuration)
}

// reserveN is ReserveN if the tokens may be used within a time.
func (lim *Limiter) reserveN(t time.Time, n int, within time.Duration) Reservation {
	return *new(Reservation).reserve(lim, t, n, within)
}

// reserve makes r a reservation of n tokens at t, if they may be used within a time.
func (r *Reservation) reserve(lim *Limiter, t time.Time, n int, within time.Duration) *Reservation {
	s := lim.current(t)
	r.lim, r.timeToAct = lim, t
	switch cost := float64(n) * s.scale; {
	case s.limit >= Inf:
		r.ok = true
	case n > s.burst || within < 0:
	case s.burst > tb.MaxCapacity:
		r.takeUnits(s, t, cost, within)
	default:
		r.take(s, t, cost, within)
	}
	return r
}

// takeUnits is take if the cost may be less than a unit of the bucket.
func (r *Reservation) takeUnits(s *state, t time.Time, cost float64, within time.Duration) {
	r.lim.mu.Lock()
	defer r.lim.mu.Unlock()
	units := math.Ceil(cost - s.paid - 1e-6) // which is more than the error of cost
	if r.take(s, t, units, within); r.ok {
		s.paid += units - cost
	}
	r.charged = false
}

// take takes cost tokens of the bucket at t, if they may be used within a time. A negative cost
// gives tokens back, if they pay the debt within that time.
func (r *Reservation) take(s *state, t time.Time, cost float64, within time.Duration) {
	var delay time.Duration
	if cost > 0 {
		r.charge, _ = s.bucket.Charge(cost) // no error: cost is positive
		if !s.still || within == InfDuration {
			r.charge.MayWait(within)
		}
		d, _ := r.charge.Take(s.reading(t)) // no error: cost and within are valid
		r.ok, r.charged, delay = d.Allowed, d.Allowed, r.charge.Delay()
		if s.still && delay > 0 {
			delay = InfDuration
		}
	} else {
		if has := s.tokensAt(t) - cost/s.scale; has < 0 {
			delay = s.limit.durationFromTokens(-has)
		}
		if r.ok = delay <= within; r.ok {
			s.bucket.AddAt(s.reading(t), -cost)
		}
	}
	if delay > 0 {
		r.timeToAct = t.Add(delay)
	}
}

// Wait is WaitN of one event.
func (lim *Limiter) Wait(ctx context.Context) error { return lim.WaitN(ctx, 1) }

// WaitN takes n tokens, and sleeps until they may be used. It takes nothing and returns an error if
// n is above the burst, or the context has ended or would end before. If the context ends while
// WaitN sleeps, WaitN cancels the reservation and returns the error of the context.
func (lim *Limiter) WaitN(ctx context.Context, n int) error {
	if s := lim.state.Load(); s != nil && s.plain && n > 0 {
		if _, err := sleep.AtMost(ctx); err == nil {
			if d, _ := s.bucket.AllowN(float64(n)); d.Allowed { // no error: n is positive
				return nil
			}
		}
	}
	newTimer := func(d time.Duration) (<-chan time.Time, func() bool, func()) {
		timer := time.NewTimer(d)
		return timer.C, timer.Stop, func() {}
	}
	return lim.wait(ctx, n, time.Now(), newTimer)
}

// wait is WaitN at t. newTimer returns a channel that receives after a time, a function that stops
// it, and a function to call before the sleep, for tests.
func (lim *Limiter) wait(
	ctx context.Context, n int, t time.Time,
	newTimer func(time.Duration) (<-chan time.Time, func() bool, func()),
) error {
	if s := lim.current(t); n > s.burst && !(s.limit >= Inf) { // a NaN counts as 0
		return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, s.burst)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	within := InfDuration
	if deadline, ok := ctx.Deadline(); ok {
		within = deadline.Sub(t)
	}
	r := lim.reserveN(t, n, within)
	if !r.ok && within == InfDuration {
		return fmt.Errorf("rate: Wait(n=%d) exceeds the debt that a limiter may have", n)
	}
	if !r.ok {
		return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline", n)
	}
	delay := r.DelayFrom(t)
	if delay == 0 {
		return nil
	}
	done, stop, sleeps := newTimer(delay)
	defer stop()
	sleeps()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
}

// Reservation is a number of tokens that were taken, and the time from which they may be used. All
// methods are safe for concurrent use.
type Reservation struct {
	ok        bool
	charged   bool // Cancel has something to give back
	lim       *Limiter
	timeToAct time.Time
	charge    cas.BucketCharge
}

// OK reports whether the tokens were taken.
func (r *Reservation) OK() bool { return r.ok }

// Delay returns the time from now until the tokens may be used, 0 if they may be, or InfDuration if
// the Reservation is not OK.
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom is Delay from t.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	return max(0, r.timeToAct.Sub(t))
}

// Cancel gives back the tokens, which the caller must not have used, unless the time to use them
// has passed. See the package documentation.
func (r *Reservation) Cancel() { r.CancelAt(time.Now()) }

// CancelAt is Cancel at t.
func (r *Reservation) CancelAt(t time.Time) {
	if r.charged && !r.timeToAct.Before(t) {
		r.lim.mu.Lock()
		defer r.lim.mu.Unlock()
		r.charge.Cancel()
	}
}
