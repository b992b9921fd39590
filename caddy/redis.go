package tokenbucket

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb/redis"
)

const defaultRedisTimeout = 50 * time.Millisecond

// Redis is a server that has the buckets of a limiter.
type Redis struct {
	// Address is host:port or a URL: redis://user@host:6379/0, with TLS rediss://user@host:6380, and
	// for a cluster redis://host1:6379?addr=host2:6379. It may have placeholders of the environment
	// and of files, such as {env.REDIS_PASSWORD}.
	Address string `json:"address"`
	// Timeout is how long a request waits for a command. The default is 50ms.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// OnFailure is what happens to a request if the server does not decide in time: "allow" it,
	// which is the default, or "refuse" it with 503.
	OnFailure string `json:"on_failure,omitempty"`
}

// resolve replaces the placeholders in the address. A reload that finds another address, such as
// one with a new password, then makes another limiter.
func (c *Redis) resolve() error {
	address, err := caddy.NewReplacer().ReplaceOrErr(c.Address, true, true)
	if err != nil {
		return fmt.Errorf("redis: address: %w", err)
	}
	c.Address = address
	return nil
}

// open returns the store of a limiter, also if the server of a single address cannot be reached
// yet. Its client is closed when the store is garbage, because Caddy drops a configuration while
// requests still use it.
func (c *Redis) open(name string) (*redis.Store, error) {
	o, err := redis.ParseAddress(c.Address)
	if err != nil {
		return nil, err // without the password of the address
	}
	client, err := redis.NewClient(o)
	if client == nil {
		return nil, err
	}
	s, err := redis.NewStore(client, redis.WithPrefix("caddy:"+url.QueryEscape(name)+":"),
		redis.WithTimeout(cmp.Or(time.Duration(c.Timeout), defaultRedisTimeout)),
		redis.WithLogger(slog.New(outages{name})))
	if err != nil {
		client.Close()
		return nil, err
	}
	runtime.AddCleanup(s, rueidis.Client.Close, client)
	return s, nil
}
