package redisurl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// TestTLS connects to a server with a certificate that SSL_CERT_FILE names. The server wants a
// certificate of the client.
func TestTLS(t *testing.T) {
	c, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	public := testkit.File(t, "cert.pem", c.public)
	t.Setenv("SSL_CERT_FILE", public)
	private := testkit.File(t, "key.pem", c.private)
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

type certificate struct{ public, private string } // PEM

// newCertificate returns a certificate for 127.0.0.1. It is the same for each run of the test,
// because a process reads SSL_CERT_FILE once.
var newCertificate = sync.OnceValues(func() (certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		return certificate{}, err
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return certificate{}, err
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return certificate{block("CERTIFICATE", der), block("PRIVATE KEY", bytes)}, nil
})
