package proxy

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// answer is the ResponseWriter of a request. It notes what the access log and the metrics
// want to know.
type answer struct {
	http.ResponseWriter
	proxy  *Proxy
	upload *upload // nil if the request has no body

	start    time.Time
	measured bool // how long the decision took
	status   int
	bytes    int64

	granted  bool
	decision httplimit.Decision // has no Rule if none applied
	key      []httplimit.KeyPart

	upgraded bool
	kept     http.Header // what informational responses must not take along
}

// Unwrap lets http.ResponseController flush, and set deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// decide says whether the request may pass. If not it has been answered.
func (a *answer) decide(r *http.Request) bool {
	if a.proxy.Policy == nil {
		a.granted = true
		return true
	}
	a.decision, a.granted = a.proxy.Limiter.Decide(a, r)
	a.measure()
	if key, ok := a.proxy.keys.LoadAndDelete(r); ok {
		a.key = key.([]httplimit.KeyPart)
	}
	return a.granted
}

// measure is called when the decision is known, and before anything is written.
func (a *answer) measure() {
	if !a.measured && a.proxy.Policy != nil {
		a.measured = true
		a.proxy.Metrics.Decision(a.start)
	}
}

// limited says whether a rule applied.
func (a *answer) limited() bool { return a.decision.Rule != "" }

// told says whether the limiter has set its fields, when the upstream answers.
func (a *answer) told() bool { return a.limited() && !a.proxy.Silent }

// refused says whether the limiter has refused the request.
func (a *answer) refused() bool { return a.limited() && !a.decision.Allowed }

// modify is for what comes from the upstream.
func (a *answer) modify(r *http.Response) error {
	if r.StatusCode != http.StatusSwitchingProtocols { // then the body is the connection
		r.Body = &body{r.Body, a.proxy}
	}
	if a.told() {
		httplimit.DropFields(r.Header)
	}
	return nil
}

// WriteHeader implements http.ResponseWriter.
//
// An upstream may answer while the client is still sending. Then net/http would read the
// rest itself before it writes the answer, and take from the upstream what it may still
// want. It does not if the connection is to be closed.
func (a *answer) WriteHeader(status int) {
	a.measure()
	switch {
	case status == http.StatusContinue:
		// net/http says so itself when the body is read, which is after the upstream has.
		a.keep()
		return
	case status < http.StatusOK:
		a.keep()
	case a.status == 0:
		a.status = status
		for name, values := range a.kept {
			a.Header()[name] = append(values, a.Header()[name]...)
		}
		switch {
		case !a.granted:
			a.linger()
		case a.upload.unread():
			a.Header().Set("Connection", "close")
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// limits are the fields that the limiter sets.
var limits = [...]string{
	"Ratelimit", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
}

// keep keeps the limiter's fields for the final response. httputil.ReverseProxy sends all
// that are set so far along with an informational response of the upstream, such as 103,
// and then drops them. What the upstream says there about its own limits is dropped.
func (a *answer) keep() {
	if !a.told() {
		return
	}
	ours := a.kept == nil
	if ours {
		a.kept = http.Header{}
	}
	for _, name := range limits {
		if values := a.Header()[name]; ours && len(values) > 0 {
			a.kept[name] = values[:1:1] // those of the upstream are behind it
		}
		delete(a.Header(), name)
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Hijack implements http.Hijacker, for WebSocket.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.status, a.upgraded = http.StatusSwitchingProtocols, true
		a.proxy.upgraded.Add(1)
	}
	return conn, buffer, err
}

// end is called when the request has been served, as well as that was possible.
func (a *answer) end(r *http.Request) {
	if a.upgraded {
		a.proxy.upgraded.Done()
	}
	a.linger()
	a.log(r)
}
