package httplimit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
)

// observeRefusal reports to an adaptive rule that it has refused a request.
func (e *entry) observeRefusal() {
	if e.control != nil {
		e.control.Refused()
	}
}

// beginFlights reports a granted request to the adaptive rules that have granted it.
func (c *call) beginFlights() (flights []adapt.Request) {
	for i := range c.entries {
		e := &c.entries[i]
		if e.control == nil || !c.hasTaken(e) {
			continue
		}
		flights = append(flights, e.control.Begin())
	}
	return flights
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
