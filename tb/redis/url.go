package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// ParseAddress returns the options of a client for limiters: without a cache of its own, with one
// connection to a server, and with a write timeout of a second unless the URL has another. An
// address is host:port or a URL of [rueidis.ParseURL], which may name a certificate of the client:
// docs/redis.md has the forms.
//
// [NewClient] makes a client from the options. The files of a certificate are in PEM, and are read
// for each connection, so they can be replaced. The error of ParseAddress does not have the
// password.
func ParseAddress(address string) (rueidis.ClientOption, error) {
	want := errors.New("want host:port or a URL such as redis://localhost:6379/0 or" +
		" rediss://user@host:6380")
	if !strings.Contains(address, "://") {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return rueidis.ClientOption{}, want
		}
		address = "redis://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "unix" && u.Hostname() == "" {
		return rueidis.ClientOption{}, want
	}
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return rueidis.ClientOption{}, fmt.Errorf("%q: %w", u.Redacted(), want)
	}
	if err := addCertificate(o.TLSConfig, u.Query()); err != nil {
		return rueidis.ClientOption{}, fmt.Errorf("%q: %w", u.Redacted(), err)
	}
	o.DisableCache = true
	o.PipelineMultiplex = -1 // one connection, so that no call waits for a further one
	o.ForceSingleClient = len(o.InitAddress) == 1 && o.Sentinel.MasterSet == ""
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, time.Second)
	return o, nil
}

// addCertificate gives the client the certificate that the parameters cert and key of a URL name.
func addCertificate(c *tls.Config, parameters url.Values) error {
	cert, key := parameters.Get("cert"), parameters.Get("key")
	switch {
	case cert == "" && key == "":
		return nil
	case c == nil || cert == "" || key == "":
		return errors.New("cert, key: want both, and a URL that begins with rediss://")
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	_, err := c.GetClientCertificate(nil)
	return err
}
