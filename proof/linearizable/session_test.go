package linearizable

import (
	"context"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
)

// reserver is a limiter with reservations, and with a limit that can be changed.
type reserver interface {
	limiter
	Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error)
	SetLimit(limit tb.Limit) error
}

// session is a limiter and the reservations that requests have made on it.
type session struct {
	reserver
	mu   sync.Mutex
	held map[*request]tb.Reservation
}

func newSession(l reserver) *session {
	return &session{reserver: l, held: make(map[*request]tb.Reservation)}
}

func (s *session) reservation(r *request) tb.Reservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[r]
}

// onSession makes the call r, which needs a session. A refused reservation is not settled, because
// it does not read the clock, as Cancel never does.
func (r *request) onSession(s *session, c *sharedClock) (a reply) {
	at := span.Origin.Add(r.at)
	switch r.verb {
	case reserve:
		c.set(at)
		v, err := s.Reserve(context.Background(), r.key, r.cost)
		s.mu.Lock()
		s.held[r] = v
		s.mu.Unlock()
		return reply{v.Decision, v.Delay(), err}
	case cancel:
		s.reservation(r.of).Cancel()
	case settle:
		if v := s.reservation(r.of); v.Allowed {
			c.set(at)
			a.err = v.Settle(r.cost)
		}
	case setLimit:
		c.set(at)
		a.err = s.SetLimit(r.limit)
	}
	return a
}

func (s bucketLimiter) Reserve(
	_ context.Context, _ string, cost float64,
) (tb.Reservation, error) {
	return s.Bucket.Reserve(cost)
}

// reserve returns a call of Reserve.
func reserved(t time.Duration, key string, n int) *request {
	return &request{verb: reserve, at: t, key: key, cost: float64(n)}
}

// correction returns a call of Cancel, or a call of Settle that settles n tokens.
func correction(v verb, t time.Duration, of *request, n int) *request {
	return &request{verb: v, at: t, key: of.key, of: of, cost: float64(n)}
}
