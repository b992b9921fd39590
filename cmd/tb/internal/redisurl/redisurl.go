// Package redisurl reads the address of a Redis server from flags, and connects to it.
package redisurl

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// The environment variables that have the user and the password if the URL has none. The arguments
// of a process are visible to all users of its machine.
const (
	userVariable     = "TB_REDIS_USER"
	passwordVariable = "TB_REDIS_PASSWORD"
)

// URL is the address of a server, or of several nodes of a cluster.
type URL struct {
	text   string // without the password
	option rueidis.ClientOption
}

const want = "want host:port or a URL such as redis://localhost:6379/0 or rediss://user@host:6380"

// UnmarshalText parses an address or a URL.
func (u *URL) UnmarshalText(text []byte) error {
	s := string(text)
	if !strings.Contains(s, "://") {
		s = "redis://" + s
	}
	parsed, err := url.Parse(s)
	if err != nil || parsed.Scheme != "unix" && parsed.Hostname() == "" {
		return errors.New(want) // the text may have a password
	}
	if u.option, err = rueidis.ParseURL(s); err != nil {
		return fmt.Errorf("%q: %s", parsed.Redacted(), want)
	}
	u.text = parsed.Redacted()
	return nil
}

// String returns the URL without the password.
func (u *URL) String() string { return u.text }

// IsSet reports whether there is an address.
func (u *URL) IsSet() bool { return len(u.option.InitAddress) > 0 }

// Dial returns a client of the server. If the URL has a single address, the client is not nil even
// if the server cannot be reached, and connects later. Several addresses are nodes of a cluster, of
// which one must be reached.
func (u *URL) Dial() (rueidis.Client, error) {
	o := u.option
	if o.Username == "" {
		o.Username = os.Getenv(userVariable)
	}
	if o.Password == "" {
		o.Password = os.Getenv(passwordVariable)
	}
	o.DisableCache = true
	o.ForceSingleClient = len(o.InitAddress) == 1 && o.Sentinel.MasterSet == ""
	if o.ConnWriteTimeout == 0 {
		o.ConnWriteTimeout = time.Second
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		err = fmt.Errorf("--redis=%v: %w", u, err)
	}
	return c, err
}
