package redisurl

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// TestTLS connects to a server with a certificate that SSL_CERT_FILE names. The server wants a
// certificate of the client.
func TestTLS(t *testing.T) {
	certificate := newCertificate()
	public := testkit.File(t, "cert.pem", certificate.PEM)
	t.Setenv("SSL_CERT_FILE", public)
	private := testkit.File(t, "key.pem", certificate.Key)
	s := redistest.StartTLS(t, public, private)
	_, port, _ := net.SplitHostPort(s.Addr)
	own := "?cert=" + url.QueryEscape(public) + "&key=" + url.QueryEscape(private)
	for address, trusted := range map[string]bool{
		"127.0.0.1:" + port + own: true, "127.0.0.1:" + port: false, "localhost:" + port + own: false,
	} {
		var u URL
		if err := u.UnmarshalText([]byte("rediss://" + address)); err != nil {
			t.Fatal(err)
		}
		c, err := u.Dial()
		if c == nil || (err == nil) != trusted {
			t.Fatalf("%s: client %v, error %v", address, c, err)
		}
		defer c.Close()
		if err := c.Do(t.Context(), c.B().Ping().Build()).Error(); (err == nil) != trusted {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// newCertificate returns a certificate for 127.0.0.1. It is the same for each run of the test,
// because a process reads SSL_CERT_FILE once.
var newCertificate = sync.OnceValue(func() *testkit.Certificate {
	return testkit.NewCertificate("127.0.0.1", nil)
})
