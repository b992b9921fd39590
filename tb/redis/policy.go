package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Policy decides the calls that the server does not decide: Refuse, Allow, Fail or LocalShare.
type Policy int

const (
	// Refuse refuses all calls. Then a failure grants no more than the server has forgotten.
	Refuse Policy = iota
	// Allow grants all calls with a cost up to Capacity. Then a failure of the server lifts the limit.
	Allow
	// Fail leaves the decision to the caller: the calls return the *Error.
	Fail
)

// LocalShare gives each process its share of the limit: see tb.Limit.Share. n is the number of
// processes, 1 to Capacity. So n processes grant at most what the limit grants. A cost above the
// share is refused.
//
// A process charges its share with the grants of the server, less what is given back, so that a
// failure starts no fresh burst. A share is a limiter of tb/cas with up to tb.DefaultMaxKeys keys.
func LocalShare(n int) Policy { return Policy(-1 - max(n, 0)) }

// String returns "refuse", "allow", "fail" or "local share".
func (p Policy) String() string {
	if p.isShare() {
		return "local share"
	}
	return [...]string{"refuse", "allow", "fail"}[p]
}

func (p Policy) isShare() bool { return p < 0 }

func (p Policy) part(limit tb.Limit) (tb.Limit, error) {
	n := int(-1 - p)
	share, err := limit.Share(n)
	var bad *tb.ConfigError
	if errors.As(err, &bad) && bad.Field == "n" {
		bad.Field, bad.Value = "WithPolicy", fmt.Sprintf("LocalShare(%d)", n)
	}
	return share, err
}

// Decider is what decided a call.
type Decider int

const (
	// ByServer is the Redis server.
	ByServer Decider = iota
	// ByDenialCache is what the limiter knows of a bucket that cannot pay: see WithMaxDenial.
	ByDenialCache
	// ByLease is tokens that this process had taken ahead: see WithLease.
	ByLease
	// ByPolicy is the policy of WithPolicy.
	ByPolicy
)

// String returns "server", "denial cache", "lease" or "failure policy".
func (d Decider) String() string {
	return [...]string{"server", "denial cache", "lease", "failure policy"}[d]
}

// Outcome is a decision and its origin.
type Outcome struct {
	tb.Decision
	By      Decider
	Failure *Error // why the failure policy decided, or nil
}

// degrade decides a call by the policy, if err is why the server did not.
func (l *Limiter) degrade(m *layout, key string, it *item, err error, r *result) error {
	var e *Error // not of r, which would be allocated
	decides := errors.As(l.undecided(err), &e) && l.policy != Fail
	if r.Failure = e; !decides { // or closed
		return err
	}
	r.Decision, r.share = l.fallback(m, key, it, e.Cause, false)
	r.By = ByPolicy
	l.counts.decided(r.Outcome)
	return nil
}

// fallback returns the decision of the policy, and what it took from a share if it does not peek.
func (l *Limiter) fallback(
	m *layout, key string, it *item, cause Cause, peek bool,
) (d tb.Decision, taken tb.Reservation) {
	switch {
	case it.needs() > m.capacity:
		return tb.Decision{RetryAfter: tb.Never}, taken
	case cause == CauseCanceled: // a client that hangs up must not get past the limit
	case l.share == nil:
		d.Allowed = l.policy == Allow
	default:
		c, _ := l.share.Charge(key, m.tokens(it.units))
		part := float64(l.share.Limit().Capacity) / float64(m.limit.Capacity)
		c.Keep(m.tokens(it.keep) * part)
		decide := c.Take
		if peek {
			decide = c.Peek
		}
		d, _ = decide(time.Now())
		taken = tb.NewReservation(d, 0, &c)
	}
	if !d.Allowed && (d.RetryAfter == 0 || d.RetryAfter == tb.Never) { // the server has a larger one
		d.RetryAfter = probeInterval
	}
	return d, taken
}

// warm charges the local share with a grant of the server, and holds it as the bucket is held. The
// share may go into debt, because other processes may have fewer grants than their shares.
func (l *Limiter) warm(ctx context.Context, m *layout, key string, units uint64, r *result) {
	if l.share == nil {
		return
	}
	if r.after.held && r.By == ByServer {
		left := time.Duration(r.after.time-r.after.now) * time.Microsecond
		_ = l.share.Hold(ctx, key, time.Now().Add(left))
	}
	if r.Allowed {
		cost := min(m.tokens(units), float64(l.share.Limit().Capacity)) // a larger one is refused
		r.share, _ = l.share.Reserve(ctx, key, cost)                    // and a debt above it, too
	}
}
