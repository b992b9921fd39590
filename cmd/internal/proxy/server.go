package proxy

import (
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
)

// cutOffTimeout is how long handlers may take to return after their connections are closed.
const cutOffTimeout = 5 * time.Second

// configure sets the protocols and timeouts of the flags, for a listener that is a connections.
// The certificate may be nil.
func configure(s *daemon.Server, f clientFlags, c *daemon.Security) {
	s.ReadHeaderTimeout = f.HeaderTimeout
	s.ConnState = setState
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(f.H2C && c == nil)
	if c != nil {
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = c.ServerConfig()
	}
}

// waitCutOff waits for the requests that are cut off, so that the state and the log have them, and
// those that have taken over their connection, such as WebSockets. http.Server does not wait for
// them; the end of their contexts ends them.
func (p *Proxy) waitCutOff() {
	end := time.Now().Add(cutOffTimeout)
	for p.requests.Load() > 0 && time.Now().Before(end) {
		time.Sleep(drainInterval)
	}
}
