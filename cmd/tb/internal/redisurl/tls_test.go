package redisurl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/testkit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// TestTLS connects to a server with a certificate that SSL_CERT_FILE names.
func TestTLS(t *testing.T) {
	certificate, key := newCertificate(t)
	t.Setenv("SSL_CERT_FILE", certificate)
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	redistest.Start(t, "--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate)
	for address, trusted := range map[string]bool{"127.0.0.1": true, "localhost": false} {
		var u URL
		if err := u.UnmarshalText([]byte("rediss://" + address + ":" + port)); err != nil {
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

// newCertificate returns the files of a certificate for 127.0.0.1 and its key.
func newCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return testkit.File(t, "cert.pem", block("CERTIFICATE", der)),
		testkit.File(t, "key.pem", block("PRIVATE KEY", bytes))
}
