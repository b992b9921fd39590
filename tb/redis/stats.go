package redis

import (
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/seed-181794aa/ratelimit/internal/unit"
)

// Stats counts from the creation of the limiter, or of its Store.
type Stats struct {
	// Granted and Refused count the calls and charges that the server decided, a charge by its own
	// decision, also if another charge of its TakeAll was refused.
	Granted, Refused uint64
	// RefusedLocally counts the calls that the limiter refused by itself: see WithMaxDenial.
	RefusedLocally uint64
	// Failed counts the calls and charges that the server did not decide, by their cause. It has an
	// element for each cause that has occurred.
	Failed map[Cause]uint64
	// Policy is the failure policy. PolicyGranted and PolicyRefused count the calls it decided, except
	// Peek of a charge.
	Policy                       Policy
	PolicyGranted, PolicyRefused uint64
	// Abandoned counts the calls that the server granted in time, but whose caller had left when the
	// reply came: because of the timeout or the context. Their tokens are taken.
	Abandoned uint64
	// Reservations counts the calls of Reserve and Wait, and of charges that may wait, that took
	// tokens of the server. Cancellations counts the cancelled ones among them. UnpaidTokens is what
	// settled costs were above their estimates and could not be charged.
	Reservations, Cancellations uint64
	UnpaidTokens                float64
	// Leased counts the calls that a lease has granted.
	Leased uint64
	// ClaimedTokens were taken for leases. ReturnedTokens of them are back in their buckets.
	ClaimedTokens, ReturnedTokens float64

	ServerStats
}

// ServerStats is what a limiter knows of the server. The limiters of a Store have it in common,
// because a command may decide several rules: the statistics of each of them have the same values.
type ServerStats struct {
	// Breaker is the state of the breaker, and Opened counts how often it has opened. In a cluster,
	// these are the worst state of its breakers, and the sum.
	Breaker BreakerState
	Opened  uint64

	// Commands counts the commands that were sent.
	Commands uint64
	// Loaded counts the commands that found a server without the script: after a failover, its restart
	// or SCRIPT FLUSH.
	Loaded uint64
	// Stale counts the commands that reached the server after all their deadlines by its clock, and
	// took nothing.
	Stale uint64
	// InFlight is the number of commands under way now, at most 256 of a limiter.
	InFlight int

	// Offset is how far the server's clock is ahead of this machine's clock, within OffsetError. Both
	// are 0 before the first reply. In a cluster it is the greatest one.
	Offset, OffsetError time.Duration
	// ClockSteps counts the replies that contradict the offset: a clock was set, or another server
	// answered.
	ClockSteps uint64
}

type counts struct {
	granted, refused            [ByPolicy + 1]atomic.Uint64 // by what decided
	denied                      *xsync.Counter              // refused, ByDenialCache
	causes                      [causes]atomic.Uint64
	abandoned                   atomic.Uint64
	reservations, cancellations atomic.Uint64
	unpaid, claimed, returned   unit.Sum
}

// decided counts a call by what decided it.
func (c *counts) decided(o Outcome) {
	switch {
	case o.By == ByDenialCache: // goroutines do not wait for each other
		c.denied.Inc()
	case o.Allowed:
		c.granted[o.By].Add(1)
	default:
		c.refused[o.By].Add(1)
	}
}

// Stats returns what the limiter has counted so far.
func (l *Limiter) Stats() Stats {
	c := &l.counts
	s := Stats{
		Granted: c.granted[ByServer].Load(), Refused: c.refused[ByServer].Load(),
		RefusedLocally: uint64(c.denied.Value()), Failed: make(map[Cause]uint64), Policy: l.policy,
		PolicyGranted: c.granted[ByPolicy].Load(), PolicyRefused: c.refused[ByPolicy].Load(),
		Abandoned: c.abandoned.Load(), Reservations: c.reservations.Load(),
		Cancellations: c.cancellations.Load(), UnpaidTokens: c.unpaid.Tokens(),
		Leased: c.granted[ByLease].Load(), ClaimedTokens: c.claimed.Tokens(),
		ReturnedTokens: c.returned.Tokens(), ServerStats: l.stats(),
	}
	for i := range c.causes {
		if n := c.causes[i].Load(); n > 0 {
			s.Failed[Cause(i)] = n
		}
	}
	return s
}

func (k *link) stats() ServerStats {
	s := ServerStats{
		Commands: k.commands.Load(), Loaded: k.loaded.Load(), Stale: k.stale.Load(),
		InFlight: int(k.inFlight.Load()),
	}
	for i := range k.nodes {
		k.nodes[i].addTo(&s, k.local(), origin.UnixMicro())
	}
	return s
}

// addTo adds what the node knows at a local time. start is the wall time in µs at local time 0.
func (n *node) addTo(s *ServerStats, local, start int64) {
	state, opened := n.breaker.stats()
	s.Opened += opened
	if state == BreakerOpen || s.Breaker == BreakerClosed {
		s.Breaker = state
	}
	low, high, steps := n.offset.bounds(local)
	s.ClockSteps += steps
	if low == 0 && high == 0 {
		return
	}
	ahead := time.Duration((low+high)/2-start) * time.Microsecond
	if s.OffsetError == 0 || ahead.Abs() > s.Offset.Abs() {
		s.Offset = ahead
		s.OffsetError = time.Duration((high-low)/2+1) * time.Microsecond
	}
}
