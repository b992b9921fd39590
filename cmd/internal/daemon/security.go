package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// Security is the certificate of a server and the authorities of its clients, in files in PEM. Both
// can be replaced while they are in use.
type Security struct {
	certFile, keyFile, clientCA string

	text        string // of the files, when they were loaded
	certificate atomic.Pointer[tls.Certificate]
	clients     atomic.Pointer[x509.CertPool]
}

// LoadSecurity reads the files, until ctx is done. clientCA is "" if clients need no certificate.
func LoadSecurity(ctx context.Context, certFile, keyFile, clientCA string) (*Security, error) {
	s := &Security{certFile: certFile, keyFile: keyFile, clientCA: clientCA}
	var err error
	if s.text, err = textfile.Await(ctx, certFile, s.read); err != nil {
		return nil, err
	}
	return s, s.apply(s.text)
}

const separator = "\x00" // between the texts of two files

func (s *Security) read() (string, error) {
	var texts []string
	for _, name := range []string{s.certFile, s.keyFile, s.clientCA} {
		if name == "" {
			continue
		}
		text, err := textfile.Read(name)
		if err != nil {
			return "", err
		}
		texts = append(texts, strings.ReplaceAll(text, separator, " "))
	}
	return strings.Join(texts, separator), nil
}

// apply puts the files in force. If one has an error, nothing changes.
func (s *Security) apply(text string) error {
	texts := strings.Split(text, separator)
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	if err != nil {
		return fmt.Errorf("%s, %s: %w", s.certFile, s.keyFile, err)
	}
	if s.clientCA != "" {
		clients := x509.NewCertPool()
		if !clients.AppendCertsFromPEM([]byte(texts[2])) {
			return fmt.Errorf("%s: no certificate in PEM", s.clientCA)
		}
		s.clients.Store(clients)
	}
	s.certificate.Store(&pair)
	return nil
}

// Watcher returns a watcher that puts changed files in force. If the certificate and its key are
// replaced one after the other, it logs an error in between.
func (s *Security) Watcher(log *slog.Logger) *textfile.Watcher {
	return &textfile.Watcher{
		Read: s.read, Applied: textfile.Content{Text: s.text},
		Apply: func(c textfile.Content, why string) {
			err := c.Err()
			if err == nil {
				err = s.apply(c.Text)
			}
			if err != nil {
				log.Error("certificate rejected: the previous one stays in force", "because", why,
					"error", err)
				return
			}
			log.Info("certificate reloaded", "because", why, "file", s.certFile)
		},
	}
}

// Certificate returns the certificate in force.
func (s *Security) Certificate() *tls.Certificate { return s.certificate.Load() }

// ServerConfig returns the configuration of a server. The protocols are for servers whose clients
// need a certificate. Others may set them later.
func (s *Security) ServerConfig(protocols ...string) *tls.Config {
	c := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return s.Certificate(), nil
	}}
	if s.clientCA == "" {
		return c
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			GetCertificate: c.GetCertificate, NextProtos: protocols,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: s.clients.Load(),
		}, nil
	}}
}
