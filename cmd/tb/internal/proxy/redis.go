package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
	"github.com/seed-181794aa/ratelimit/tb/redis/metrics"
)

// Shared makes the limiters of rules whose buckets are in Redis.
type Shared struct {
	client     rueidis.Client
	timeout    time.Duration
	failClosed bool
	metrics    *metrics.Collector
	names      map[string]bool // of the rules that metrics has
}

// dial connects to Redis, if there is a flag for it. The proxy also starts without the server.
func (r *runner) dial() error {
	if !r.Redis.IsSet() {
		return nil
	}
	client, err := r.Redis.Dial()
	if client == nil {
		return err
	}
	if err != nil {
		r.log.Warn("Redis does not answer yet", "error", err)
	}
	r.shared = &Shared{
		client: client, timeout: r.RedisTimeout, failClosed: r.RedisFailure == "refuse",
		metrics: metrics.New(), names: map[string]bool{},
	}
	return nil
}

// close closes the connections to Redis.
func (s *Shared) close() {
	if s != nil {
		s.client.Close()
	}
}

// options returns the options of the limiter. The limiters in Redis have a timeout of their own.
func (s *Shared) options() []httplimit.Option {
	all := []httplimit.Option{httplimit.WithLimiter(s.newLimiter), httplimit.WithTimeout(0)}
	if s.failClosed {
		all = append(all, httplimit.WithFailClosed())
	}
	return all
}

// check returns an error for each rule that needs a limiter in the memory of the proxy.
func (s *Shared) check(p *httplimit.Policy) error {
	var errs []error
	seen := map[string]bool{}
	check := func(r *httplimit.Rule) {
		add := func(wrong bool, problem string) {
			if wrong {
				errs = append(errs, fmt.Errorf("rule %q: --redis %s", r.Name, problem))
			}
		}
		add(seen[r.Name], "needs another name, because a rule of another set has this one")
		seen[r.Name] = true
		add(r.OnLimit == httplimit.Delay, `has no "on_limit": "delay"`)
		add(r.Tiers.By != "", "has no tiers")
		add(r.Adaptive != httplimit.Adaptive{}, "has no adaptive rates")
		add(strings.HasPrefix(r.Cost.Source, "response:"), "has no costs in the response")
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

// newLimiter returns the limiter of a rule. All proxies with the same name and keys of the rule
// share its buckets, also if the limits differ during a reload.
func (s *Shared) newLimiter(r httplimit.Rule) (tb.Limiter, error) {
	var keys []string
	for _, k := range r.Keys {
		keys = append(keys, url.QueryEscape(k))
	}
	prefix := "tb:" + url.QueryEscape(r.Name) + ":" + strings.Join(keys, ",") + ":"
	l, err := redis.New(s.client, r.Limit, redis.WithPrefix(prefix), redis.WithTimeout(s.timeout))
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", r.Name, err)
	}
	s.metrics.Set(r.Name, l)
	s.names[r.Name] = true
	return sharedLimiter{l}, nil
}

// forget removes the metrics of rules that the policy does not have.
func (s *Shared) forget(rules []httplimit.RuleStats) {
	inForce := map[string]bool{}
	for _, r := range rules {
		inForce[r.Rule] = true
	}
	for name := range s.names {
		if !inForce[name] {
			s.metrics.Remove(name)
			delete(s.names, name)
		}
	}
}

// setPolicy puts a policy in force, or returns what keeps it from being so.
func (p *Proxy) setPolicy(policy *httplimit.Policy) error {
	if p.Shared == nil {
		return p.Limiter.SetPolicy(policy)
	}
	err := p.Shared.check(policy)
	if err == nil {
		err = p.Limiter.SetPolicy(policy)
	}
	p.Shared.forget(p.Limiter.Stats())
	return err
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
