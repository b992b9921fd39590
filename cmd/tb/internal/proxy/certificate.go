package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
)

// certificate is the certificate that clients see. It can be replaced while it is in use.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

func loadCertificate(ctx context.Context, certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	return c, c.load(ctx)
}

// load reads the files, until ctx is done. If they have an error, the certificate stays as it was.
func (c *certificate) load(ctx context.Context) error {
	var texts [2]string
	for i, name := range []string{c.certFile, c.keyFile} {
		read, err := readUntil(ctx, name)
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

// readUntil returns the text of a file, or an error if ctx is done first.
func readUntil(ctx context.Context, name string) (string, error) {
	select {
	case c := <-startReading(name, readRegular):
		if c.problem != "" {
			return "", errors.New(c.problem)
		}
		return c.text, nil
	case <-ctx.Done():
		return "", errors.New(name + ": interrupted while reading")
	}
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// reloadCertificate reads the certificate again, if there is one.
func (r *runner) reloadCertificate(ctx context.Context) {
	if r.certificate == nil {
		return
	}
	if err := r.certificate.load(ctx); err != nil {
		r.log.Error("certificate rejected: the previous one stays in force", "error", err)
		return
	}
	r.log.Info("certificate reloaded", "file", r.TLSCert)
}
