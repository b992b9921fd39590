package redis

import (
	"errors"
	"sync"
	"time"
)

// quiet is for how long the server must have decided all calls before an outage has ended. So a
// server that fails again and again makes at most two records in this time.
const quiet = time.Second

// outage is a time in which the server has left calls undecided. The zero value is none.
type outage struct {
	calls       uint64 // that the server has not decided, 0 if there is no outage
	first, last int64  // the local times of these calls
}

// outages are the outages of a limiter. A server that answers some calls with an error, for example
// because of a foreign value, does not hide that it fails for all.
type outages struct {
	mu      sync.Mutex
	answers outage // the server answers, and does not decide
	fails   outage // the server does not answer
}

// undecided counts a call that the server has not decided because of err, and returns err. It logs
// the first call of an outage. A client that hangs up makes none.
func (l *shared) undecided(err error) error {
	var e *Error
	if !errors.As(err, &e) { // nil, or the limiter is closed
		return err
	}
	l.counts.causes[e.Cause].Add(1)
	if l.logger == nil || e.Cause == CauseCanceled {
		return err
	}
	l.outages.mu.Lock()
	o := &l.outages.fails
	if e.health() == healthy {
		o = &l.outages.answers
	}
	o.calls++
	o.last = l.local()
	begins := o.calls == 1
	if begins {
		o.first = o.last
	}
	l.outages.mu.Unlock()
	if begins {
		l.logger.Warn("tb/redis: the server does not decide", "prefix", l.prefix, "error", e)
	}
	return err
}

// decides is called when the server has decided all calls of a command. It logs the end of an
// outage. While a breaker is open, the server of other keys may be down.
func (l *shared) decides() {
	if l.logger == nil {
		return
	}
	for _, o := range []*outage{&l.outages.answers, &l.outages.fails} {
		l.outages.mu.Lock()
		calls, lasted := o.calls, time.Duration(o.last-o.first)*time.Microsecond
		ends := calls > 0 && l.local()-o.last >= quiet.Microseconds() && l.stats().Breaker != BreakerOpen
		if ends {
			o.calls = 0
		}
		l.outages.mu.Unlock()
		if ends {
			l.logger.Info("tb/redis: the server decides again", "lasted", lasted, "undecided", calls)
		}
	}
}
