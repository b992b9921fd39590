package rls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/daemon"
)

// listen opens an address: host:port, or unix:// and the path of a socket.
func listen(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		return net.Listen("tcp", address)
	}
	path = strings.TrimPrefix(path, "//")
	if path == "" { // the system would choose a name
		return nil, errors.New("want the path of a socket after unix://")
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) {
		if err = os.Remove(path); err == nil {
			l, err = net.Listen("unix", path)
		}
	}
	return l, err
}

// isAbandoned reports whether a path is a socket that no process listens on, as after a kill.
func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // nothing was written
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// transportSecurity is the certificate of the server, and the authorities of its clients. Both can
// be read again while they are in use.
type transportSecurity struct {
	certificate *daemon.Certificate
	clientCA    string // file; "" if clients need no certificate
	clients     atomic.Pointer[x509.CertPool]
}

// loadSecurity returns what the flags name, or nil without TLS.
func loadSecurity(ctx context.Context, f connectionFlags) (*transportSecurity, error) {
	if f.TLSCert == "" {
		return nil, nil // no TLS is not an error
	}
	s := &transportSecurity{clientCA: f.TLSClientCA}
	var err error
	if s.certificate, err = daemon.LoadCertificate(ctx, f.TLSCert, f.TLSKey); err != nil {
		return nil, err
	}
	return s, s.loadClients(ctx)
}

// load reads the files again. A file with an error changes nothing.
func (s *transportSecurity) load(ctx context.Context) error {
	return errors.Join(s.certificate.Load(ctx), s.loadClients(ctx))
}

func (s *transportSecurity) loadClients(ctx context.Context) error {
	if s.clientCA == "" {
		return nil
	}
	text, err := daemon.ReadUntil(ctx, s.clientCA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return fmt.Errorf("%s: no certificate in PEM", s.clientCA)
	}
	s.clients.Store(pool)
	return nil
}

// config returns the configuration of the server, or nil without TLS.
func (s *transportSecurity) config() *tls.Config {
	if s == nil {
		return nil
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := &tls.Config{GetCertificate: s.certificate.Get, NextProtos: []string{"h2"}}
		if s.clientCA != "" {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, s.clients.Load()
		}
		return c, nil
	}}
}
