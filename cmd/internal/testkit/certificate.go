package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Certificate is a certificate with its key, both also in PEM.
type Certificate struct {
	*x509.Certificate
	PEM, Key string
	key      *ecdsa.PrivateKey
}

// NewCertificate returns a certificate for a name or an address, which another one signs. Without
// another one it signs itself, and may sign others.
func NewCertificate(host string, by *Certificate) *Certificate {
	c := &Certificate{}
	c.key = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses, template.DNSNames = []net.IP{ip}, nil
	}
	parent, signer := template, c.key
	if by != nil {
		parent, signer = by.Certificate, by.key
	}
	der := must(x509.CreateCertificate(rand.Reader, template, parent, &c.key.PublicKey, signer))
	secret := must(x509.MarshalPKCS8PrivateKey(c.key))
	c.Certificate = must(x509.ParseCertificate(der))
	c.PEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	c.Key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return c
}

// Pair returns the certificate for connections.
func (c *Certificate) Pair() tls.Certificate {
	return must(tls.X509KeyPair([]byte(c.PEM), []byte(c.Key)))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
