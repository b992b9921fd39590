package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// parameters are those of a URL: what rueidis reads, cert and key.
var parameters = []string{"addr", "cert", "client_cache", "client_name", "db", "dial_timeout",
	"key", "master_set", "max_retries", "protocol", "skip_verify", "write_timeout"}

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
		" rediss://user@host:6380; in a password / # ? % are %2F %23 %3F %25; ports are 1 to 65535")
	if !strings.Contains(address, "://") {
		if lacksPort(address) {
			return rueidis.ClientOption{}, want
		}
		address = "redis://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "unix" && u.Hostname() == "" || u.Fragment != "" ||
		u.Host != "" && strings.Contains(u.EscapedPath()+u.RawQuery, "@") { // of a bare password
		return rueidis.ClientOption{}, want
	}
	u.Path = strings.TrimSuffix(u.Path, "/") // ParseURL takes it for a database without a number
	o, err := rueidis.ParseURL(u.String())
	q, wrong := url.ParseQuery(u.RawQuery)
	for name := range q {
		if !slices.Contains(parameters, name) {
			wrong = fmt.Errorf("parameter %q: want one of %v", name, parameters)
		}
	}
	switch {
	case err != nil:
		err = fmt.Errorf("%w; %w", err, want)
	case wrong != nil:
		err = wrong
	case u.Scheme == "unix" && (u.Host != "" || u.Path == "" || q.Has("addr")):
		err = errors.New("want the path of one socket, such as unix:///run/redis.sock")
	case u.Scheme != "unix" && slices.ContainsFunc(append(q["addr"], o.InitAddress[0]), lacksPort):
		err = errors.New("want a host and a port from 1 to 65535, also in each addr")
	case q.Has("protocol") && q.Get("protocol") != "2" && q.Get("protocol") != "3":
		err = errors.New("protocol: want 2 or 3")
	case o.SelectDB < 0:
		err = errors.New("database: want 0 or more")
	case q.Has("dial_timeout") && o.Dialer.Timeout <= 0,
		q.Has("write_timeout") && o.ConnWriteTimeout <= 0:
		err = errors.New("dial_timeout, write_timeout: want more than 0, such as 250ms")
	default:
		err = addCertificate(o.TLSConfig, q)
	}
	if err != nil {
		return rueidis.ClientOption{}, fmt.Errorf("%q: %w", u.Scheme+"://"+u.Host+u.Path, err)
	}
	o.DisableCache = true
	o.PipelineMultiplex = -1 // one connection, so that no call waits for a further one
	o.ForceSingleClient = len(o.InitAddress) == 1 && o.Sentinel.MasterSet == ""
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, time.Second)
	o.ClusterOption.MaxMovedRedirections = 5 // by default, two nodes may send a command on forever
	o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, rueidis.DefaultDialTimeout)
	o.Dialer.KeepAlive = rueidis.DefaultTCPKeepAlive
	o.Sentinel.Dialer, o.Sentinel.TLSConfig = o.Dialer, o.TLSConfig // or it has neither
	o.Sentinel.TopologyRefreshInterval = 5 * time.Second            // an event may be missed
	return o, nil
}

// lacksPort reports whether an address is not one host and a port that a server can have.
func lacksPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	n, wrong := strconv.ParseUint(port, 10, 16)
	return err != nil || wrong != nil || host == "" || n == 0 || strings.Contains(host, ",")
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
