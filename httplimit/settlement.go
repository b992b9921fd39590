package httplimit

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// Settlement settles the charges of one granted request whose costs are in its response: see
// Cost.Source. It also reports the response to the rules whose rate adapts: see Adaptive.
// Limiter.Admit returns it.
//
// A handler that passes the request on gets Request in its place. The response must be written to
// Writer, and Finish must be called when the response has ended, also after a panic. Cancel instead
// of Finish is for a request that was not served, and Abandon for a request whose client has left.
//
// A nil Settlement has nothing to settle, and all its methods may be called. The methods must not
// be called at the same time.
type Settlement struct {
	call      *call // nil after the settlement
	w         http.ResponseWriter
	parts     []part
	flights   []adapt.Request // nil once the status is known
	bytes     int64           // of the response's body
	usage     UsageReader     // or nil
	isRead    bool            // the header
	hijacked  bool
	byStatus  bool // a rule has its cost in the status
	hasStatus bool // ReadStatus was called

	bodyFailed atomic.Bool // a Read of the request's body has failed
}

// newSettlement returns the settlement of a granted request, or nil if it has none.
func (c *call) newSettlement(observed bool) *Settlement {
	adapts := observed && c.policy.adapts && CanForward(c.r) &&
		!strings.ContainsFunc(c.r.Header.Get("Upgrade"), isNotPrintable) // a ReverseProxy answers 502
	if !c.policy.settles && !adapts {
		return nil
	}
	var parts []part
	var flights []adapt.Request
	byStatus := false
	for i := range c.entries {
		e := &c.entries[i]
		if p := &e.price; p.hidden || p.inResponse && c.hasTaken(e) {
			parts = append(parts, part{entry: e})
			byStatus = byStatus || p.kind == policy.ResponseStatus
		}
		if adapts && e.control != nil && c.hasTaken(e) {
			flights = append(flights, e.control.Begin())
		}
	}
	if parts == nil && flights == nil {
		return nil
	}
	return &Settlement{call: c, parts: parts, flights: flights, byStatus: byStatus}
}

func isNotPrintable(r rune) bool { return r < ' ' || r > '~' }

// hasTaken reports whether the tokens of an entry of a granted request are taken. If the store has
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

// Request returns the request to pass on in place of r. Its body tells the settlement of a client
// that breaks its body off, or sends one that is malformed. A reverse proxy answers that with 502.
// Adaptive rules do not observe it, and no rule has its cost in that status, so that a client
// neither lowers a rate with it nor a cost.
func (s *Settlement) Request(r *http.Request) *http.Request {
	if s == nil || s.flights == nil && !s.byStatus || r.Body == nil || r.Body == http.NoBody {
		return r
	}
	watched := *r
	watched.Body = &watchedBody{r.Body, &s.bodyFailed}
	return &watched
}

// watchedBody is the body of a request. It records whether it has failed.
type watchedBody struct {
	io.ReadCloser
	failed *atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.failed.Store(true)
	}
	return n, err
}

// Finish settles the charges. An estimate stands if the response has not reported the cost. It
// counts in RuleStats.Estimated.
func (s *Settlement) Finish() {
	if s == nil || s.call == nil {
		return
	}
	if s.w != nil {
		// If no handler has written an answer, what recovers from a panic still can.
		s.readHeader(0, s.w.Header())
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

// ReadStatus reads the status of a response that is not written to Writer: a status of HTTP such as
// 401, or a code of gRPC such as UNAUTHENTICATED. The writer of Writer calls it. Only the first
// status counts, and none if the client has left before. Middleware reads 200 if its handler has
// returned and has written nothing. Otherwise the estimate stands then.
func (s *Settlement) ReadStatus(status string) {
	if s == nil || s.call == nil {
		return
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		code = http.StatusOK
	}
	if status == "UNAVAILABLE" || status == "DEADLINE_EXCEEDED" {
		code = http.StatusServiceUnavailable
	}
	s.observe(code, nil)
	for i := range s.parts {
		p := &s.parts[i]
		if p.price.kind == policy.ResponseStatus && !s.hasStatus && !s.isGone() {
			p.actual, p.known = p.Cost.OfStatus(status), true
		}
	}
	s.hasStatus = true
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
		stands, err := p.cost, error(nil)
		if p.known {
			stands, err = p.actual, p.charge.Settle(p.actual)
		}
		if err == nil {
			err = c.addStanding(p.entry, stands)
		}
		switch {
		case err != nil:
			c.count(p.entry).errors.Add(1)
			c.runHook(c.l.hooks.Error, p.entry, err)
		case p.known:
			p.settled.Add(1)
		default:
			p.estimated.Add(1)
		}
	}
}

// part is the settlement of one rule, or only hides its field.
type part struct {
	*entry
	known  bool
	actual float64
}

// ReadHeader reads the costs from the header of a response, and removes the fields that are hidden.
// The writer of Writer calls it. A proxy calls it with the header of a response that it writes to a
// hijacked connection. Only the first call has an effect.
func (s *Settlement) ReadHeader(h http.Header) { s.readHeader(0, h) }

// readHeader is ReadHeader for a response whose status is known, unless that is 0.
func (s *Settlement) readHeader(status int, h http.Header) {
	if s == nil || s.isRead {
		return
	}
	s.isRead = true
	s.beginUsage(h)
	s.observe(cmp.Or(status, http.StatusOK), h)
	if status != 0 && s.byStatus {
		s.ReadStatus(strconv.Itoa(status))
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.price.field != "" {
			p.actual, p.known = p.price.actual(h[p.price.field])
		}
	}
	for i := range s.parts {
		if p := &s.parts[i].price; p.hidden {
			delete(h, p.field)
			if lines := h["Trailer"]; len(lines) > 0 {
				names := listed([]string{strings.Join(lines, ",")})
				h["Trailer"] = slices.DeleteFunc(names, func(name string) bool {
					return strings.EqualFold(name, p.field)
				})
			}
		}
	}
}

// hideTrailers removes the fields that are hidden from the trailers that were not announced.
func (s *Settlement) hideTrailers(h http.Header) {
	for i := range s.parts {
		p := &s.parts[i].price
		maps.DeleteFunc(h, func(key string, _ []string) bool {
			name, isTrailer := strings.CutPrefix(key, http.TrailerPrefix)
			return p.hidden && isTrailer && strings.EqualFold(name, p.field)
		})
	}
}

// beginUsage begins to read the usage of the response, if a rule has its cost there.
func (s *Settlement) beginUsage(h http.Header) {
	for i := range s.parts {
		if s.parts[i].price.kind == policy.ResponseUsage {
			s.usage = s.call.l.usage.Read(s.call.r, h)
			return
		}
	}
}

// readBody reads the costs that the body has shown.
func (s *Settlement) readBody() {
	if s.call.r.Method == http.MethodHead { // net/http drops the body
		s.bytes = 0
	}
	s.report(policy.ResponseBytes, float64(s.bytes))
	if s.usage != nil {
		if tokens, ok := s.usage.Usage(); ok && tokens >= 0 {
			s.report(policy.ResponseUsage, tokens)
		}
	}
}

// report makes a number of tokens the cost of the rules with this kind of source.
func (s *Settlement) report(kind string, tokens float64) {
	for i := range s.parts {
		if p := &s.parts[i]; p.price.kind == kind {
			p.actual, p.known = p.price.bound(tokens), true
		}
	}
}

// meter is the ResponseWriter of a Settlement.
type meter struct {
	http.ResponseWriter
	s *Settlement
}

// newMeter returns a meter with the optional methods of w. It has ReadFrom only with the other
// methods of HTTP/1, because io.Copy does not need it. With Hijack it always has Flush.
func newMeter(s *Settlement, w http.ResponseWriter) http.ResponseWriter {
	m := &meter{w, s}
	_, canRead := w.(io.ReaderFrom)
	canFlush := supports[http.Flusher](w) || supports[interface{ FlushError() error }](w)
	canHijack := supports[http.Hijacker](w)
	f := flusher{m}
	switch {
	case canHijack && canFlush && canRead: // HTTP/1
		return readerFrom{hijacker{f}}
	case canHijack:
		return hijacker{f}
	case canFlush:
		return f
	}
	return m
}

// supports reports whether w, or a writer that it unwraps to, is a T.
func supports[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = inner.Unwrap()
	}
}

// Unwrap lets http.ResponseController set deadlines.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (m *meter) WriteHeader(status int) {
	if status < http.StatusContinue || status >= http.StatusOK ||
		status == http.StatusSwitchingProtocols {
		m.s.readHeader(status, m.Header())
		m.ResponseWriter.WriteHeader(status)
		return
	}
	// The fields of an informational response are not about the cost of the final one.
	hidden := http.Header{}
	for _, p := range m.s.parts {
		field := p.price.field
		if values, isSet := m.Header()[field]; isSet && p.price.hidden {
			hidden[field] = values
			delete(m.Header(), field)
		}
	}
	m.ResponseWriter.WriteHeader(status)
	maps.Copy(m.Header(), hidden)
}

// Write implements http.ResponseWriter.
func (m *meter) Write(b []byte) (int, error) {
	m.s.readHeader(http.StatusOK, m.Header())
	n, err := m.ResponseWriter.Write(b)
	m.s.bytes += int64(n)
	if m.s.usage != nil {
		_, _ = m.s.usage.Write(b[:n])
	}
	return n, err
}

// WriteString implements io.StringWriter.
func (m *meter) WriteString(text string) (int, error) {
	m.s.readHeader(http.StatusOK, m.Header())
	if m.s.usage != nil {
		return m.Write([]byte(text))
	}
	n, err := io.WriteString(m.ResponseWriter, text)
	m.s.bytes += int64(n)
	return n, err
}

type flusher struct{ *meter }

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is what http.ResponseController calls.
func (f flusher) FlushError() error {
	f.s.readHeader(http.StatusOK, f.Header())
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacker struct{ flusher }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil {
		h.s.hijacked = true
		h.s.ReadStatus(strconv.Itoa(http.StatusSwitchingProtocols))
	}
	return conn, buffer, err
}

type readerFrom struct{ hijacker }

// ReadFrom implements io.ReaderFrom.
func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	r.s.readHeader(http.StatusOK, r.Header())
	if usage := r.s.usage; usage != nil {
		src = io.TeeReader(src, ignoringErrors{usage})
	}
	n, err := r.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	r.s.bytes += n
	return n, err
}

// ignoringErrors is a writer that a response does not depend on.
type ignoringErrors struct{ io.Writer }

func (w ignoringErrors) Write(b []byte) (int, error) {
	_, _ = w.Writer.Write(b)
	return len(b), nil
}

// observe reports the header of the response to the adaptive rules. Only the first call has an
// effect.
func (s *Settlement) observe(status int, h http.Header) {
	if s == nil || s.flights == nil {
		return
	}
	gone := status == statusClientGone || s.isGone()
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

// isGone reports whether the client has left, or has not sent all of its body.
func (s *Settlement) isGone() bool {
	return s.bodyFailed.Load() || errors.Is(s.call.r.Context().Err(), context.Canceled)
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
