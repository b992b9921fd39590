package httplimit

import (
	"net/http"

	"github.com/seed-181794aa/ratelimit/adapt"
)

// Settlement settles the charges of one granted request whose costs are in its response: see
// Cost.Source. It also reports the response to the rules whose rate adapts: see Adaptive.
// Limiter.Admit returns it.
//
// The response must be written to Writer, and Finish must be called when the response has ended,
// also after a panic. Cancel instead of Finish is for a request that was not served, and Abandon
// for a request whose client has left.
//
// A nil Settlement has nothing to settle, and all its methods may be called. The methods must not
// be called at the same time.
type Settlement struct {
	call     *call // nil after the settlement
	w        http.ResponseWriter
	parts    []part
	flights  []adapt.Request // nil once the status is known
	bytes    int64           // of the response's body
	usage    UsageReader     // or nil
	isRead   bool            // ReadHeader was called
	hijacked bool
}

// newSettlement returns the settlement of a granted request, or nil if it has none.
func (c *call) newSettlement(observed bool) *Settlement {
	adapts := observed && c.policy.adapts && CanForward(c.r)
	if !c.policy.settles && !adapts {
		return nil
	}
	var parts []part
	var flights []adapt.Request
	for i := range c.entries {
		e := &c.entries[i]
		if p := &e.price; p.hidden || p.inResponse && c.hasTaken(e) {
			parts = append(parts, part{entry: e})
		}
		if adapts && e.control != nil && c.hasTaken(e) {
			flights = append(flights, e.control.Begin())
		}
	}
	if parts == nil && flights == nil {
		return nil
	}
	return &Settlement{call: c, parts: parts, flights: flights}
}

// hasTaken reports whether the tokens of an entry of a granted request are taken. If a limiter has
// failed, a request that has waited before has given them back.
func (c *call) hasTaken(e *entry) bool {
	return e.decision.Allowed && !c.failedOpen
}

// Writer returns the ResponseWriter for the response. It has the optional methods of w: Flush,
// Hijack, ReadFrom and what http.ResponseController calls. http.MaxBytesReader knows only the
// ResponseWriter of net/http, and does not close the connection of another one. So wrap Middleware
// in http.MaxBytesHandler.
func (s *Settlement) Writer(w http.ResponseWriter) http.ResponseWriter {
	if s == nil {
		return w
	}
	s.w = w
	return newMeter(s, w)
}

// Finish settles the charges. An estimate stands if the response has not reported the cost. It
// counts in RuleStats.Estimated.
func (s *Settlement) Finish() {
	if s == nil || s.call == nil {
		return
	}
	if s.w != nil {
		// If no handler has written an answer, what recovers from a panic still can.
		s.ReadHeader(s.w.Header())
		s.hideTrailers(s.w.Header())
		if !s.hijacked {
			s.readBody()
		}
	}
	s.observe(http.StatusOK, nil) // if the caller has passed no header on
	s.settle()
}

// Cancel settles the charges at 0, and counts as a failure for adaptive rules, because the request
// has used nothing: for example, there is no connection to the upstream. A request that an upstream
// may have worked on must not be free, so that a client cannot get past a limit by disconnecting.
func (s *Settlement) Cancel() {
	if s == nil || s.call == nil {
		return
	}
	s.observe(http.StatusServiceUnavailable, nil)
	for i := range s.parts {
		s.parts[i].actual, s.parts[i].known = 0, true
	}
	s.settle()
}

// Abandon is Finish for a request whose client has left before the response, for example because
// its deadline has passed. For adaptive rules the latency then counts only if it is above the
// target. Finish does the same if the context of the request is cancelled.
func (s *Settlement) Abandon() {
	s.observe(statusClientGone, nil)
	s.Finish()
}

// settle ends the settlement.
func (s *Settlement) settle() {
	c, parts := s.call, s.parts
	s.call, s.parts = nil, nil
	defer c.end()
	for i := range parts {
		p := &parts[i]
		if !c.hasTaken(p.entry) {
			continue
		}
		if !p.known {
			p.estimated.Add(1)
			continue
		}
		if err := p.charge.Settle(p.actual); err != nil {
			c.count(p.entry).errors.Add(1)
			c.runHook(c.l.hooks.Error, p.entry, err)
			continue
		}
		p.settled.Add(1)
	}
}
