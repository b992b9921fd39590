// Package redisurl reads the address of a Redis server from flags, and connects to it.
package redisurl

import (
	"cmp"
	"fmt"
	"net/url"
	"os"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// URL is the address of a server, or of several nodes of a cluster.
type URL struct {
	text   string // without the password
	option rueidis.ClientOption
}

// UnmarshalText parses an address or a URL: see redis.ParseAddress.
func (u *URL) UnmarshalText(text []byte) (err error) {
	if u.option, err = redis.ParseAddress(string(text)); err != nil {
		return err
	}
	u.text = string(text)
	if parsed, err := url.Parse(u.text); err == nil {
		u.text = parsed.Redacted()
	}
	return nil
}

// String returns the URL without the password.
func (u *URL) String() string { return u.text }

// IsSet reports whether there is an address.
func (u *URL) IsSet() bool { return len(u.option.InitAddress) > 0 }

// Dial returns a client of the server. If the URL has a single address, the client is not nil even
// if the server cannot be reached, and connects later. A single address may be the endpoint of a
// cluster. Several addresses are nodes of a cluster, of which one must be reached.
func (u *URL) Dial() (rueidis.Client, error) {
	c, err := redis.NewClient(u.withSecrets())
	if err != nil {
		err = fmt.Errorf("--redis=%v: %w", u, err)
	}
	return c, err
}

// withSecrets returns the options with what the environment has, because the arguments of a process
// are visible to all users of its machine.
func (u *URL) withSecrets() rueidis.ClientOption {
	o := u.option
	o.Username = cmp.Or(o.Username, os.Getenv("TB_REDIS_USER"))
	o.Password = cmp.Or(o.Password, os.Getenv("TB_REDIS_PASSWORD"))
	o.Sentinel.Username = os.Getenv("TB_REDIS_SENTINEL_USER")
	o.Sentinel.Password = os.Getenv("TB_REDIS_SENTINEL_PASSWORD")
	return o
}

// Open returns a store with options until the process is closed, or nil without an address. It logs
// if the server cannot be reached yet, and the store logs outages.
func (u *URL) Open(p *daemon.Process, opts ...redis.Option) (httplimit.Store, error) {
	if !u.IsSet() {
		return nil, nil
	}
	c, err := u.Dial()
	if c == nil {
		return nil, err
	}
	p.OnClose(c.Close)
	if err != nil {
		p.Log.Warn("Redis does not answer yet", "error", err)
	}
	return redis.NewStore(c, append(opts, redis.WithLogger(p.Log))...)
}
