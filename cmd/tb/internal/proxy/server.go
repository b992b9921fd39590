package proxy

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/daemon"
)

// upgradedTimeout is how long handlers of upgraded connections may take to return after the
// connections are closed.
const upgradedTimeout = time.Second

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
		s.TLSConfig = &tls.Config{GetCertificate: c.Certificate}
	}
}

// waitUpgraded waits for the requests that have taken over their connection, such as
// WebSockets. http.Server does not wait for them; the end of their contexts closes them.
func (p *Proxy) waitUpgraded() {
	done := make(chan struct{})
	go func() {
		p.upgraded.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(upgradedTimeout):
	}
}
