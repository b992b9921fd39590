package redis

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// window is the number of commands that the breaker looks at. It opens if half of them have
	// failed, or the last failuresInARow.
	window         = 20
	failuresInARow = 5

	// probeInterval is the mean time between two probes of an open breaker. The probes of several
	// processes must not meet, so each interval is up to a quarter shorter or longer.
	probeInterval = 250 * time.Millisecond

	// leastInFlight is the bound of the calls under way after a successful probe. It doubles with
	// every so many successes, up to maxInFlight. So the callers do not return all at once.
	leastInFlight = 8
)

// BreakerState says whether calls go to the server.
type BreakerState int

const (
	// BreakerClosed is the normal state: all calls do.
	BreakerClosed BreakerState = iota
	// BreakerOpen says that the failure policy decides all calls, except one every 250 ms.
	BreakerOpen
	// BreakerRecovering says that the server answers again, and the calls under way are bounded: 8,
	// 16, 32, 64 and 128. The failure policy decides the calls beyond.
	BreakerRecovering
)

// String returns "closed", "open" or "recovering".
func (s BreakerState) String() string {
	return [...]string{"closed", "open", "recovering"}[s]
}

// breaker keeps calls from a server that does not decide. The zero value is closed. All methods are
// safe for concurrent use. Times are local times in µs.
type breaker struct {
	mu       sync.Mutex
	state    BreakerState
	opened   uint64 // how often it has opened
	failures uint32 // the last commands, a bit for each: 1 is a failure, and bit 0 is the last one
	since    int64  // the time of the last failure; what began before shows no other one
	probe    int64  // the time of the next probe, if open
	cause    *Error // why it is open

	// If recovering:
	most      int // the most calls under way
	underWay  int
	successes int // since most has changed
}

// enter admits a call, or returns why not. opened is for leave.
func (b *breaker) enter(now int64) (opened uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case BreakerOpen:
		if now < b.probe {
			return 0, b.cause
		}
		b.setProbe(now)
	case BreakerRecovering:
		if b.underWay >= b.most {
			return 0, &Error{Cause: CauseBusy}
		}
	}
	b.underWay++
	return b.opened, nil
}

type health int

const (
	unknown health = iota
	healthy        // it decides calls, if perhaps not this one
	failed         // it decides nothing at present, or too late
)

// health returns what a command shows that returned e. A command has a deadline only if its call
// had the whole timeout, so a client cannot open the breaker with short deadlines.
func (e *Error) health() health {
	if e == nil {
		return healthy
	}
	switch e.Cause {
	case CauseOutOfMemory, CauseForbidden, CauseForeign: // another key or cost may be decided
		return healthy
	case CauseBusy, CauseOpen, CauseCanceled: // it was not asked
		return unknown
	}
	return failed
}

func (b *breaker) leave(opened uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if opened == b.opened {
		b.underWay--
	}
}

// observe takes in what was seen of the server by a command, or by a call that has timed out, which
// began at a time. What began before the last failure was seen shows nothing new: a server that
// stops for a moment fails all that is under way, once.
func (b *breaker) observe(began int64, e *Error, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if began < b.since {
		return
	}
	switch e.health() {
	case healthy:
		b.succeed()
	case failed:
		b.since = now
		b.fail(e, now)
	}
}

// succeed is called with the lock held.
func (b *breaker) succeed() {
	b.failures = b.failures << 1 & (1<<window - 1)
	switch b.state {
	case BreakerOpen: // the probe
		b.state, b.failures, b.most, b.successes = BreakerRecovering, 0, leastInFlight, 0
	case BreakerRecovering:
		if b.successes++; b.successes < b.most {
			return
		}
		b.most, b.successes = 2*b.most, 0
		if b.most >= maxInFlight {
			b.state = BreakerClosed
		}
	}
}

// fail is called with the lock held.
func (b *breaker) fail(e *Error, now int64) {
	const row = 1<<failuresInARow - 1
	b.failures = (b.failures<<1 | 1) & (1<<window - 1)
	if b.state == BreakerOpen ||
		b.failures&row != row && bits.OnesCount32(b.failures) < window/2 {
		return
	}
	b.state, b.failures, b.underWay = BreakerOpen, 0, 0
	b.opened++
	b.cause = &Error{CauseOpen, e}
	b.setProbe(now)
}

func (b *breaker) setProbe(now int64) {
	const mean = int64(probeInterval / time.Microsecond)
	b.probe = now + mean - mean/4 + rand.Int64N(mean/2)
}

func (b *breaker) stats() (BreakerState, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.opened
}

func (k *link) observe(n *node, began int64, e *Error) {
	if e.health() == failed {
		k.failed.Store(k.local())
	}
	n.breaker.observe(began, e, k.local())
}
