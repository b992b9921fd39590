package proxy

import (
	"crypto/tls"
	"sync/atomic"
)

// certificate is the certificate that clients see. It can be replaced while it is in use.
type certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

func loadCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	return c, c.load()
}

// load reads the files. If they have an error, the certificate stays as it was.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.current.Store(&pair)
	}
	return err
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// reloadCertificate reads the certificate again, if there is one.
func (r *runner) reloadCertificate() {
	if r.certificate == nil {
		return
	}
	if err := r.certificate.load(); err != nil {
		r.log.Error("certificate rejected: the previous one stays in force", "error", err)
		return
	}
	r.log.Info("certificate reloaded", "file", r.TLSCert)
}
