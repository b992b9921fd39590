package httplimit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// control moves the rate of a rule. Two controls of one limiter exist while a policy replaces
// another. Only one of them is running.
type control struct {
	*adapt.Controller
	limiter tb.StoreLimiter
	current atomic.Pointer[rule] // the rule with its present limit

	mu    sync.Mutex
	phase phase
}

type phase int

const (
	fresh   phase = iota // the limiter has another limit
	running              // the control sets the limit
	stopped              // the limiter may have another control
)

var errStopped = errors.New("httplimit: another policy sets the limit")

// addControl gives r, which takes the place of old, the control of its rate. old may be nil.
func (l *Limiter) addControl(r, old *rule) error {
	if r.Adaptive == (policy.Adaptive{}) || r.Shadow {
		return nil
	}
	if old != nil && old.control != nil && old.ruleState == r.ruleState &&
		old.Adaptive == r.Adaptive && old.Limit == r.Limit {
		r.control = old.control
		return nil
	}
	c := &control{limiter: r.limiters[0]}
	c.current.Store(r)
	var err error
	config := r.AdaptConfig()
	config.Now = l.clock
	c.Controller, err = adapt.New(c, config)
	r.control = c
	return err
}

// SetLimit sets the limit of the rule's limiter, if the control is running.
func (c *control) SetLimit(limit tb.Limit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.phase {
	case fresh: // adapt.New sets the limit that start sets
		return nil
	case stopped:
		return errStopped
	}
	if err := c.limiter.SetLimit(limit); err != nil {
		return err
	}
	c.setCurrent(c.current.Load(), limit)
	return nil
}

// setCurrent makes the rule with the limit the current one.
func (c *control) setCurrent(r *rule, limit tb.Limit) {
	next := *r
	next.Limit = limit
	next.ruleText = newRuleText(next.label, &next.Rule)
	c.current.Store(&next)
}

// setPhase stops the control, or lets it go on.
func (c *control) setPhase(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

// now returns the rule with its present limit.
func (r *rule) now() *rule {
	if r.control == nil {
		return r
	}
	return r.control.current.Load()
}

// startControls starts the controls of a policy that is used from now on.
func (p *compiled) startControls() {
	for _, r := range p.rules {
		if r.control != nil {
			r.control.start(r)
		}
	}
}

// start starts the control, or goes on with it, for a rule that may have another label than before.
func (c *control) start(r *rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setCurrent(r, c.current.Load().Limit)
	c.phase = running
}

// observe reports the header of the response to the adaptive rules. Only the first call has an
// effect.
func (s *Settlement) observe(status int, h http.Header) {
	if s == nil || s.flights == nil {
		return
	}
	gone := status == statusClientGone || errors.Is(s.call.r.Context().Err(), context.Canceled)
	for _, f := range s.flights {
		switch {
		case gone: // whatever the handler answers
			f.Cancel()
		case isOverload(status):
			f.Fail(readRetryAfter(h))
		default:
			f.Done()
		}
	}
	s.flights = nil
}

// isOverload reports whether a status means that the downstream is overloaded or down. A client
// can cause other errors as it likes.
func isOverload(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

const fieldRetryAfter = "Retry-After"

// readRetryAfter returns the seconds that a response asks to wait, or 0. A date is ignored, because
// the clocks of two machines differ.
func readRetryAfter(h http.Header) time.Duration {
	const most = 3600 // more than adapt uses
	if values := h[fieldRetryAfter]; len(values) > 0 {
		if n, err := strconv.ParseUint(values[0], 10, 32); err == nil {
			return time.Duration(min(n, most)) * time.Second
		}
	}
	return 0
}
