package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

const drainTimeout = time.Second // for the rest of an unwanted body, to reuse the connection

type responseRecorder struct {
	http.ResponseWriter
	proxy   *Proxy
	request *requestBody // nil if the request has no body

	version int // of HTTP: 10, 11 or 20
	start   time.Time
	sent    time.Time // to the upstream
	status  int
	bytes   int64

	granted  bool
	decision httplimit.Decision // has no Rule if no rule applied
	key      []httplimit.KeyPart

	settlement *httplimit.Settlement // nil without a rule that has its cost in the response

	upgraded bool
	bounded  bool        // by streamTimeout
	held     http.Header // the limiter's fields, kept out of informational responses
}

// Unwrap lets http.ResponseController flush and set deadlines.
func (rec *responseRecorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *responseRecorder) ruleApplied() bool { return rec.decision.Rule != "" }

func (rec *responseRecorder) refused() bool { return rec.ruleApplied() && !rec.decision.Allowed }

func (rec *responseRecorder) hasLimiterFields() bool {
	return rec.ruleApplied() && !rec.proxy.Fields.OnlyRefused
}

func (rec *responseRecorder) modifyResponse(r *http.Response) error {
	if r.StatusCode < 100 || r.StatusCode > 999 { // ResponseWriter would panic
		return fmt.Errorf("malformed HTTP status code %03d", r.StatusCode)
	}
	if rec.request != nil {
		rec.request.answered.Store(true)
	}
	rec.proxy.Metrics.UpstreamHeader(time.Since(rec.sent))
	if r.StatusCode == http.StatusSwitchingProtocols { // the body is the connection
		rec.settlement.ReadHeader(r.Header)
	} else {
		r.Body = &responseBody{r.Body, rec, r.Request.Context()}
	}
	if rec.hasLimiterFields() {
		httplimit.DropFields(r.Header)
	}
	return nil
}

// WriteHeader implements http.ResponseWriter.
//
// An upstream may answer while the client still sends the body. net/http would then read the
// rest of the body itself before it writes the answer, although the upstream may still want
// it. WriteHeader prevents that: it announces that the connection closes.
func (rec *responseRecorder) WriteHeader(status int) {
	switch {
	case rec.upgraded: // the client has disconnected
		return
	case status < http.StatusOK:
		rec.hold()
		// net/http sends 100 when the body is read: after the upstream has asked for it. A client of
		// HTTP/1.0 would take any for the answer (RFC 9110, section 15.2).
		if status == http.StatusContinue || rec.version == 10 {
			return
		}
	case rec.status == 0:
		rec.status = status
		if h := rec.Header(); h["Content-Type"] == nil {
			h["Content-Type"] = nil // or net/http would guess it from the body
		}
		for name, values := range rec.held {
			rec.Header()[name] = append(values, rec.Header()[name]...)
		}
		if !rec.granted {
			rec.boundBodyDrain()
		}
		if rec.proxy.closing.Load() || rec.granted && rec.version < 20 && rec.request.unread() {
			rec.Header().Set("Connection", "close")
		}
	}
	rec.ResponseWriter.WriteHeader(status)
}

func limiterFields(c Config) []string {
	all := []string{"Ratelimit", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}
	if c.Fields.Policy {
		all = append(all, "Ratelimit-Policy")
	}
	if c.Fields.XRateLimit {
		all = append(all, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
	}
	return all
}

// hold holds the limiter's fields back for the final response. httputil.ReverseProxy sends
// all fields set so far with an informational response of the upstream, such as 103, and
// then drops them. The upstream's own fields of these names in such a response are dropped.
func (rec *responseRecorder) hold() {
	if !rec.hasLimiterFields() {
		return
	}
	if rec.held == nil {
		rec.held = http.Header{}
	}
	for _, name := range rec.proxy.fields {
		if values := rec.Header()[name]; len(values) > 0 && rec.held[name] == nil {
			rec.held[name] = values[:1:1] // the upstream's values follow it
		}
		delete(rec.Header(), name)
	}
}

func (rec *responseRecorder) Write(b []byte) (int, error) {
	if rec.upgraded {
		return 0, http.ErrHijacked
	}
	if rec.status == 0 {
		rec.WriteHeader(http.StatusOK)
	}
	n, err := rec.ResponseWriter.Write(b)
	rec.bytes += int64(n)
	return n, err
}

// Hijack implements http.Hijacker, for WebSocket.
func (rec *responseRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil {
		rec.status, rec.upgraded = http.StatusSwitchingProtocols, true
	}
	return conn, buffer, err
}

// boundBodyDrain bounds how long net/http reads the rest of the request's body, before it
// sends an answer or finishes the request. Without a bound it waits forever.
func (rec *responseRecorder) boundBodyDrain() {
	if rec.request.unread() {
		deadline := time.Now().Add(drainTimeout)
		// This fails only without a connection, as in tests.
		_ = http.NewResponseController(rec.ResponseWriter).SetReadDeadline(deadline)
	}
}

// bound begins or ends the streamTimeout of a client of HTTP/2. Between two pieces, the upstream
// may take any time.
func (rec *responseRecorder) bound(isWriting bool) {
	if rec.version < 20 || rec.bounded == isWriting {
		return
	}
	rec.bounded = isWriting
	var end time.Time
	if isWriting {
		end = time.Now().Add(streamTimeout)
	}
	// This fails only without a connection, as in tests.
	_ = http.NewResponseController(rec.ResponseWriter).SetWriteDeadline(end)
}

func (rec *responseRecorder) finish(r *http.Request) {
	rec.bound(true) // for the last piece, which net/http still has
	rec.settlement.Finish()
	rec.request.release()
	rec.boundBodyDrain()
	rec.logAccess(r)
	rec.proxy.Metrics.Response(rec.status)
	rec.proxy.requests.Add(-1)
}
