package proxy

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// answer is the ResponseWriter of a request. It notes what the access log and the metrics
// want to know.
type answer struct {
	http.ResponseWriter
	proxy *Proxy

	start    time.Time
	decision bool // was made
	status   int
	bytes    int64

	limited bool // event is the decision on the request
	event   httplimit.Event

	upgraded bool
	kept     http.Header // what informational responses must not take along
}

// Unwrap lets http.ResponseController flush, and set deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// decided notes that the limiter is done with the request.
func (a *answer) decided() {
	if !a.decision && a.proxy.Policy != nil {
		a.decision = true
		a.proxy.Metrics.Decision(time.Since(a.start))
	}
}

// WriteHeader implements http.ResponseWriter.
//
// httputil.ReverseProxy sends all fields that are set so far along with an informational
// response of the upstream, such as 103, and then drops them. The limiter's fields belong
// to the final response, so they are kept for that.
func (a *answer) WriteHeader(status int) {
	a.decided()
	switch {
	case status < 200:
		a.keep()
	case a.status == 0:
		a.status = status
		for name, values := range a.kept {
			a.Header()[name] = append(values, a.Header()[name]...)
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) keep() {
	for name, values := range a.Header() {
		if strings.HasPrefix(name, "Ratelimit") {
			if a.kept == nil {
				a.kept = http.Header{}
			}
			a.kept[name] = values
			delete(a.Header(), name)
		}
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
	a.log(r)
}
