package linearizable

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

type verb int

const (
	allowAt verb = iota
	allowN
	reserve
	peek
	reset
	cancel
	settle
	setLimit
)

// request is a call and the reading of the clock that it brings.
type request struct {
	verb  verb
	at    time.Duration // since span.Origin
	key   string
	cost  float64
	of    *request // of cancel and settle: the call that made the reservation
	limit tb.Limit // of setLimit

	yield bool // the goroutine yields after it has recorded the call and before it makes it

	overlapped bool // another call was under way at the same time
	inserting  bool // another call that was under way at the same time may have inserted the key
	evicting   bool // another call that was under way at the same time may have evicted the key
	changing   bool // another call that was under way at the same time was a SetLimit
	absent     *request
}

// allow returns a call of AllowAt.
func allow(t time.Duration, key string, n int) *request {
	return &request{at: t, key: key, cost: float64(n)}
}

func (r *request) String() string {
	return fmt.Sprintf("%s %q %v at %v", [...]string{
		"AllowAt", "AllowN", "Reserve", "Peek", "Reset", "Cancel", "Settle", "SetLimit",
	}[r.verb], r.key, r.cost, r.at)
}

// reply is the result of a call as its caller sees it.
type reply struct {
	tb.Decision
	delay time.Duration // of a reservation
	err   error
}

// limiter has the methods that requests call.
type limiter interface {
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
	AllowN(ctx context.Context, key string, cost float64) (tb.Decision, error)
	Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Reset(key string)
	SetLimit(limit tb.Limit) error
}

// bucketLimiter is a cas.Bucket as a limiter with one key, which is never reset.
type bucketLimiter struct{ *cas.Bucket }

func (s bucketLimiter) AllowAt(t time.Time, _ string, cost float64) (tb.Decision, error) {
	return s.Bucket.AllowAt(t, cost)
}

func (s bucketLimiter) AllowN(_ context.Context, _ string, cost float64) (tb.Decision, error) {
	return s.Bucket.AllowN(cost)
}

func (s bucketLimiter) Reserve(
	_ context.Context, _ string, cost float64,
) (tb.Reservation, error) {
	return s.Bucket.Reserve(cost)
}

func (s bucketLimiter) Peek(_ context.Context, _ string) (tb.Decision, error) {
	return s.Bucket.Peek(), nil
}

func (bucketLimiter) Reset(string) { panic("a bucket has no Reset") }

// sharedClock is a clock for many callers at once, each with its own reading. A caller sets its
// reading and holds the lock until the limiter reads the clock, which the limiter does once in
// each call with a valid cost. The rest of the call is not under the lock.
type sharedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *sharedClock) set(now time.Time) {
	c.mu.Lock()
	c.now = now
}

func (c *sharedClock) read() time.Time {
	defer c.mu.Unlock()
	return c.now
}

// session is a limiter, its clock and the reservations that requests have made on it.
type session struct {
	limiter
	clock sharedClock
	mu    sync.Mutex
	held  map[*request]tb.Reservation
}

// newSession makes a limiter for a scenario.
func newSession(sc *scenario, open func(...tb.Option) (limiter, error)) *session {
	s := &session{held: make(map[*request]tb.Reservation)}
	var err error
	s.limiter, err = open(
		tb.WithClock(s.clock.read), tb.WithMaxKeys(sc.maxKeys), tb.WithOverflow(sc.overflow))
	if err != nil {
		panic(err)
	}
	span.Start(s.limiter)
	return s
}

func (s *session) reservation(r *request) tb.Reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[r]
}

// do makes the call r. A refused reservation is not settled, because it does not read the clock,
// as Cancel and a call with an invalid cost never do.
func (s *session) do(r *request) (a reply) {
	ctx := context.Background()
	at := span.Origin.Add(r.at)
	switch {
	case r.verb == allowAt || r.verb == cancel || r.verb == allowN && r.cost <= 0:
	case r.verb == settle && !s.reservation(r.of).Allowed:
		return a
	default:
		s.clock.set(at)
	}
	switch r.verb {
	case allowAt:
		a.Decision, a.err = s.AllowAt(at, r.key, r.cost)
	case allowN:
		a.Decision, a.err = s.AllowN(ctx, r.key, r.cost)
	case reserve:
		v, err := s.Reserve(ctx, r.key, r.cost)
		s.mu.Lock()
		s.held[r] = v
		s.mu.Unlock()
		a = reply{v.Decision, v.Delay(), err}
	case peek:
		a.Decision, a.err = s.Peek(ctx, r.key)
	case reset:
		s.Reset(r.key)
	case cancel:
		s.reservation(r.of).Cancel()
	case settle:
		a.err = s.reservation(r.of).Settle(r.cost)
	case setLimit:
		a.err = s.SetLimit(r.limit)
	}
	return a
}
