package daemon

import (
	"context"
	"crypto/tls"
	"sync/atomic"
)

// Certificate is the certificate that clients see. It can be replaced while it is in use.
type Certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// LoadCertificate returns the certificate in two files in PEM.
func LoadCertificate(ctx context.Context, certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	return c, c.Load(ctx)
}

// Load reads the files, until ctx is done. If they have an error, the certificate stays as it was.
func (c *Certificate) Load(ctx context.Context) error {
	var texts [2]string
	for i, name := range []string{c.certFile, c.keyFile} {
		read, err := ReadUntil(ctx, name)
		if err != nil {
			return err
		}
		texts[i] = read
	}
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	if err == nil {
		c.current.Store(&pair)
	}
	return err
}

// Get returns the certificate for a handshake.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}
