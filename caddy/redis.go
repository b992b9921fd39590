package tokenbucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
	"github.com/seed-181794aa/ratelimit/tb/redis/metrics"
)

const defaultRedisTimeout = 50 * time.Millisecond

// Redis is a server that has the buckets of a limiter.
type Redis struct {
	// Address is host:port or a URL: redis://user@host:6379/0, with TLS rediss://user@host:6380, and
	// for a cluster redis://host1:6379?addr=host2:6379. It may have placeholders of the environment
	// and of files, such as {env.REDIS_PASSWORD}.
	Address string `json:"address"`
	// Timeout is how long a rule waits for the server. The default is 50ms.
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

// store makes the limiters of rules whose buckets are in Redis.
type store struct {
	name       string // of the limiter
	client     rueidis.Client
	timeout    time.Duration
	failClosed bool
	metrics    *metrics.Collector
	names      map[string]bool // of the rules that metrics has
}

// openStore returns a store, also if the server of a single address cannot be reached yet. Its
// client is closed when the store is garbage, because Caddy drops a configuration while requests
// still use it.
func openStore(name string, c *Redis) (*store, error) {
	if c.OnFailure != "" && c.OnFailure != "allow" && c.OnFailure != "refuse" {
		return nil, fmt.Errorf("redis: on_failure is %q, want allow or refuse", c.OnFailure)
	}
	address := c.Address
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "unix" && u.Hostname() == "" {
		return nil, errors.New("redis: want host:port or a URL") // the address may have a password
	}
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis: %s is not an address", u.Redacted())
	}
	o.DisableCache = true
	o.ForceSingleClient = len(o.InitAddress) == 1 && o.Sentinel.MasterSet == ""
	o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, time.Second)
	client, err := rueidis.NewClient(o)
	if client == nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	st := &store{
		name: name, client: client, failClosed: c.OnFailure == "refuse",
		timeout: cmp.Or(time.Duration(c.Timeout), defaultRedisTimeout),
		metrics: metrics.New(), names: map[string]bool{},
	}
	runtime.AddCleanup(st, rueidis.Client.Close, client)
	return st, nil
}

// options returns the options of the limiter. The limiters in Redis have a timeout of their own.
func (s *store) options() []httplimit.Option {
	all := []httplimit.Option{httplimit.WithLimiter(s.newLimiter), httplimit.WithTimeout(0)}
	if s.failClosed {
		all = append(all, httplimit.WithFailClosed())
	}
	return all
}

// check returns an error for each rule that cannot have its buckets in Redis.
func (s *store) check(p *httplimit.Policy) error {
	var errs []error
	seen := map[string]bool{}
	check := func(r *httplimit.Rule) {
		add := func(wrong bool, problem string) {
			if wrong {
				errs = append(errs, fmt.Errorf("rule %q: in Redis, a rule %s", r.Name, problem))
			}
		}
		add(seen[r.Name], "needs a name that no rule of another set has")
		seen[r.Name] = true
		add(r.OnLimit == httplimit.Delay, "cannot delay")
		add(r.Tiers.By != "", "has no tiers")
		add(r.Adaptive != httplimit.Adaptive{}, "has no adaptive rate")
		add(strings.HasPrefix(r.Cost.Source, "response:"), "has no cost in the response")
		if _, err := redis.New(s.client, r.Limit); err != nil {
			errs = append(errs, fmt.Errorf("rule %q: %w", r.Name, err))
		}
	}
	for i := range p.Sets {
		for j := range p.Sets[i].Rules {
			check(&p.Sets[i].Rules[j])
		}
		if fallback := p.Sets[i].Fallback; fallback != nil {
			check(fallback)
		}
	}
	return errors.Join(errs...)
}

// newLimiter returns the limiter of a rule. All servers with the same name of the limiter, and name
// and keys of the rule, share its buckets.
func (s *store) newLimiter(r httplimit.Rule) (tb.Limiter, error) {
	parts := append([]string{"caddy", s.name, r.Name}, r.Keys...)
	for i, part := range parts {
		parts[i] = url.QueryEscape(part)
	}
	prefix := strings.Join(parts, ":") + ":"
	l, err := redis.New(s.client, r.Limit, redis.WithPrefix(prefix), redis.WithTimeout(s.timeout))
	if err != nil {
		return nil, err
	}
	s.metrics.Set(s.label(r.Name), l)
	s.names[r.Name] = true
	return sharedLimiter{l}, nil
}

// label is the value of the label limiter in the metrics of a rule. No other rule has it: the first
// slash ends the name of the limiter.
func (s *store) label(rule string) string { return url.PathEscape(s.name) + "/" + rule }

// forget removes the metrics of rules that are not in force.
func (s *store) forget(inForce []httplimit.RuleStats) {
	for name := range s.names {
		isRule := func(r httplimit.RuleStats) bool { return r.Rule == name }
		if !slices.ContainsFunc(inForce, isRule) {
			s.metrics.Remove(s.label(name))
			delete(s.names, name)
		}
	}
}

// sharedLimiter is a limiter in Redis that returns why Redis did not decide.
type sharedLimiter struct{ limiter *redis.Limiter }

// SetLimit changes the limit from the next request on.
func (l sharedLimiter) SetLimit(limit tb.Limit) error { return l.limiter.SetLimit(limit) }

// Allow implements tb.Limiter.
func (l sharedLimiter) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return l.AllowN(ctx, key, 1)
}

// AllowN implements tb.Limiter. If Redis does not decide, it returns why: httplimit then lets the
// request pass or answers it with 503, and not with 429.
func (l sharedLimiter) AllowN(ctx context.Context, key string, n int) (tb.Decision, error) {
	o, err := l.limiter.Decide(ctx, key, float64(n))
	if err == nil && o.Failure != nil {
		err = o.Failure
	}
	return o.Decision, err
}
