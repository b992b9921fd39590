package httplimit

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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
	flights   []adapt.Request // nil once the status is known
	bytes     int64           // of the response's body
	usage     UsageReader     // or nil
	body      *watchedBody    // of the request, or nil
	isRead    bool            // the header
	hijacked  bool
	byStatus  bool // a rule has its cost in the status
	hasStatus bool // ReadStatus was called
}

func (c *call) newSettlement(observed bool) *Settlement {
	var s *Settlement
	for i := range c.entries {
		e := &c.entries[i]
		adapts := observed && e.control != nil && c.hasTaken(e) && c.isForwarded()
		if !adapts && !c.settles(e) {
			continue
		}
		if s == nil {
			s = &Settlement{call: c}
		}
		s.byStatus = s.byStatus || e.price.kind == policy.ResponseStatus
		if adapts {
			s.flights = append(s.flights, e.control.Begin())
		}
	}
	return s
}

// isForwarded reports whether a ReverseProxy sends the request on, and does not answer 502 itself.
func (c *call) isForwarded() bool {
	isNotPrintable := func(r rune) bool { return r < ' ' || r > '~' }
	return CanForward(c.r) && !strings.ContainsFunc(c.r.Header.Get("Upgrade"), isNotPrintable)
}

// hasTaken reports whether the tokens of an entry of a granted request are taken. If the store has
// failed, a request that has waited before has given them back.
func (c *call) hasTaken(e *entry) bool { return e.decision.Allowed && !c.failedOpen }

func (c *call) settles(e *entry) bool { return e.price.inResponse && c.hasTaken(e) }

// Writer returns the ResponseWriter for the response. It has the optional methods of w: Flush,
// Hijack, ReadFrom and what http.ResponseController calls. http.MaxBytesReader closes only the
// connection of a ResponseWriter of net/http, so wrap Middleware in http.MaxBytesHandler.
func (s *Settlement) Writer(w http.ResponseWriter) http.ResponseWriter {
	if s == nil {
		return w
	}
	s.w = w
	f := flusher{&meter{w, s}}
	switch { // io.Copy needs no ReadFrom without Hijack, as over HTTP/2
	case supports[http.Hijacker](w):
		return hijacker{f}
	case supports[http.Flusher](w) || supports[interface{ FlushError() error }](w):
		return f
	}
	return f.meter
}

// Request returns the request to pass on in place of r. Its body tells the settlement of a client
// that breaks its body off, or sends one that is malformed. A reverse proxy answers that with 502,
// with which a client lowers neither the rate of an adaptive rule nor a cost.
func (s *Settlement) Request(r *http.Request) *http.Request {
	if s == nil || s.flights == nil && !s.byStatus || r.Body == nil || r.Body == http.NoBody {
		return r
	}
	watched := *r
	s.body = &watchedBody{ReadCloser: r.Body}
	watched.Body = s.body
	return &watched
}

// watchedBody is the body of a request. It records whether it has failed before it was closed: by
// net/http, or by a transport while it reads, if an upstream of HTTP/2 ends the stream.
type watchedBody struct {
	io.ReadCloser
	failed, closed atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	isOver := errors.Is(err, io.EOF) || errors.Is(err, http.ErrBodyReadAfterClose) || b.closed.Load()
	if err != nil && !isOver {
		b.failed.Store(true)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
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
	for i := range s.call.entries {
		s.call.entries[i].read(0, true)
	}
	s.settle()
}

// Abandon is Finish for a request whose client has left before the response, for example because
// its deadline has passed. For adaptive rules the latency then counts only if it is above the
// target. Finish does the same if the context of the request is cancelled or, without a Writer, has
// ended.
func (s *Settlement) Abandon() {
	s.observe(statusClientGone, nil)
	s.Finish()
}

// ReadStatus reads the status of a response that is not written to Writer: a status of HTTP such as
// 401, or a code of gRPC such as UNAUTHENTICATED. The writer of Writer calls it. Only the first
// status counts, and if the client has left before, only one that costs more than the estimate.
// Middleware reads 200 if its handler has returned and has written nothing. Otherwise the estimate
// stands then.
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
	for i := range s.call.entries {
		e := &s.call.entries[i]
		if e.price.kind == policy.ResponseStatus && !s.hasStatus {
			cost := e.Cost.OfStatus(status)
			// A client may close its side of the connection, and still read the answer.
			e.read(cost, !s.isGone() || cost > e.cost && code != statusClientGone)
		}
	}
	s.hasStatus = true
}

func (s *Settlement) settle() {
	c := s.call
	s.call = nil
	defer c.end()
	for i := range c.entries {
		e := &c.entries[i]
		if !c.settles(e) {
			continue
		}
		var err error
		if e.known {
			err = e.charge.Settle(e.cost)
		}
		if err == nil {
			err = c.addStanding(e)
		}
		switch {
		case err != nil:
			c.count(e).errors.Add(1)
			c.runHook(c.l.hooks.Error, e, err)
		case e.known:
			e.settled.Add(1)
		default:
			e.estimated.Add(1)
		}
	}
}

// read makes a cost that the response has shown, if it has, the cost of the request.
func (e *entry) read(cost float64, known bool) {
	if known {
		e.cost, e.known = cost, true
	}
}

// ReadHeader reads the costs from the header of a response, as the writer of Writer does. A proxy
// calls it for a response to a hijacked connection. Only the first call has an effect.
func (s *Settlement) ReadHeader(h http.Header) { s.readHeader(0, h) }

// readHeader is ReadHeader for a response whose status is known, unless that is 0.
func (s *Settlement) readHeader(status int, h http.Header) {
	if s == nil || s.call == nil || s.isRead {
		return
	}
	s.isRead = true
	s.observe(cmp.Or(status, http.StatusOK), h)
	if status != 0 && s.byStatus {
		s.ReadStatus(strconv.Itoa(status))
	}
	for i := range s.call.entries {
		e := &s.call.entries[i]
		switch e.price.kind {
		case policy.ResponseHeader:
			e.read(e.price.actual(h[e.price.field]))
		case policy.ResponseUsage:
			if s.usage == nil && s.call.settles(e) {
				s.usage = s.call.l.usage.Read(s.call.r, h)
			}
		}
	}
}

func (s *Settlement) readBody() {
	if s.call.r.Method == http.MethodHead { // net/http drops the body
		s.bytes = 0
	}
	tokens, hasUsage := 0.0, false
	if s.usage != nil {
		tokens, hasUsage = s.usage.Usage()
	}
	for i := range s.call.entries {
		e := &s.call.entries[i]
		switch e.price.kind {
		case policy.ResponseBytes:
			e.read(e.price.bound(float64(s.bytes)), true)
		case policy.ResponseUsage:
			e.read(e.price.bound(tokens), hasUsage && tokens >= 0)
		}
	}
}

type meter struct {
	http.ResponseWriter
	s *Settlement
}

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

// CloseNotify is for Stream of gin, which does not ask whether a writer has it.
func (m *meter) CloseNotify() <-chan bool {
	if w, ok := m.ResponseWriter.(interface{ CloseNotify() <-chan bool }); ok {
		return w.CloseNotify()
	}
	return nil
}

func (m *meter) WriteHeader(status int) {
	isFinal := status < http.StatusContinue || status >= http.StatusOK ||
		status == http.StatusSwitchingProtocols
	if isFinal { // or its fields are not about the cost
		m.s.readHeader(status, m.Header())
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *meter) Write(b []byte) (int, error) {
	m.s.readHeader(http.StatusOK, m.Header())
	n, err := m.ResponseWriter.Write(b)
	m.s.bytes += int64(n)
	if m.s.usage != nil {
		_, _ = m.s.usage.Write(b[:n])
	}
	return n, err
}

type flusher struct{ *meter }

func (f flusher) Flush() { _ = f.FlushError() }

func (f flusher) FlushError() error {
	f.s.readHeader(http.StatusOK, f.Header())
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijacker struct{ flusher }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil {
		h.s.hijacked = true
		h.s.ReadStatus(strconv.Itoa(http.StatusSwitchingProtocols))
	}
	return conn, buffer, err
}

func (h hijacker) ReadFrom(src io.Reader) (int64, error) {
	metered := struct{ io.Writer }{h.meter}
	// It reads the header with the first byte. If src fails before, the handler can still answer.
	n, err := io.Copy(metered, io.LimitReader(src, 512))
	if err != nil || n < 512 {
		return n, err
	}
	to, before := io.Writer(h.ResponseWriter), h.s.bytes
	if h.s.usage != nil {
		to = metered
	}
	rest, err := io.Copy(to, src)
	h.s.bytes = before + rest
	return n + rest, err
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
		case status == http.StatusTooManyRequests,
			status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout:
			f.Fail(readRetryAfter(h)) // a client can cause other errors as it likes
		default:
			f.Done()
		}
	}
	s.flights = nil
}

// isGone reports whether the client has left, or has not sent all of its body. The deadline of a
// request without a Writer is the client's, as in gRPC.
func (s *Settlement) isGone() bool {
	err := s.call.r.Context().Err()
	return s.body != nil && s.body.failed.Load() || errors.Is(err, context.Canceled) ||
		err != nil && s.w == nil
}

const fieldRetryAfter = "Retry-After"

// readRetryAfter returns the seconds that a response asks to wait, or 0. A date is ignored, because
// the clocks of two machines differ.
func readRetryAfter(h http.Header) time.Duration {
	if values := h[fieldRetryAfter]; len(values) > 0 {
		if n, err := strconv.ParseUint(values[0], 10, 32); err == nil {
			return time.Duration(n) * time.Second // which no 32 bits overflow
		}
	}
	return 0
}
