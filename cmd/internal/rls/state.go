package rls

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// state is a configuration in force. Only its overrides change.
type state struct {
	config    *config.Config
	rules     map[*config.Rule]*rule
	byID      map[string]*rule
	overrides *overrides
}

// rule is a rule of a configuration with what it keeps when the configuration changes.
type rule struct {
	*config.Rule
	limiter *limiter // may be nil if isFixed, and is not used then
	counts  *ruleCounts
	details *details // by path, if the path depends on the request

	limit *ratelimit.RateLimitResponse_RateLimit // as answers have it
	text  ruleText
}

// isFixed reports whether the rule grants every hit or refuses every hit. It keeps its buckets
// meanwhile, so that it grants no fresh burst when it has a limit again.
func (r *rule) isFixed() bool { return r.Limit == tb.Limit{} }

// limiter has the buckets of a rule, in memory or in Redis.
type limiter struct {
	local  *cas.TokenBucket
	shared *redis.Limiter
	paid   atomic.Int64 // when no bucket is in debt any more, in Unix seconds
}

// owes records that a bucket is in debt until a time in Unix seconds.
func (l *limiter) owes(until int64) {
	for paid := l.paid.Load(); paid < until && !l.paid.CompareAndSwap(paid, until); {
		paid = l.paid.Load()
	}
}

// SetConfig puts a configuration in force. A rule keeps its buckets if the configuration before had
// the same descriptors. If the limit of a rule is not possible, SetConfig returns an error and
// changes nothing.
func (s *Service) SetConfig(next *config.Config) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	before := s.state.Load()
	after := &state{
		config: next, rules: map[*config.Rule]*rule{}, byID: map[string]*rule{},
		overrides: before.overrides,
	}
	if after.overrides == nil {
		after.overrides = newOverrides(s)
	}
	var changes []func() error
	var errs []error
	for _, c := range next.Rules {
		r, change, err := s.newRule(c, before.byID[c.ID])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Place, err))
			continue
		}
		after.rules[c], after.byID[c.ID] = r, r
		if change != nil {
			changes = append(changes, change)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, change := range changes {
		if err := change(); err != nil {
			return err
		}
	}
	s.state.Store(after)
	return nil
}

// newRule returns a rule that continues the rule before, which may be nil. change, which may be
// nil, changes the limit.
func (s *Service) newRule(c *config.Rule, before *rule) (r *rule, change func() error, err error) {
	r = &rule{
		Rule: c, text: newRuleText(c),
		limit: &ratelimit.RateLimitResponse_RateLimit{
			Name: c.Name, RequestsPerUnit: c.RequestsPerUnit, Unit: c.Unit,
		},
	}
	if before != nil {
		r.counts, r.details, r.limiter = before.counts, before.details, before.limiter
	}
	if r.counts == nil {
		r.counts, r.details = new(ruleCounts), new(details)
	}
	switch {
	case r.isFixed():
	case r.limiter == nil:
		r.limiter, err = s.newLimiter(c)
	case before.Limit != c.Limit:
		change, err = r.limiter.setLimit(c.Limit)
	}
	return r, change, err
}

// newLimiter returns the limiter of a rule. All processes with one store and the same descriptors
// share its buckets, also if the limits differ during a reload.
func (s *Service) newLimiter(c *config.Rule) (*limiter, error) {
	if s.Store == nil {
		local, err := cas.New[string](c.Limit, s.LimiterOptions...)
		return &limiter{local: local}, err
	}
	name := url.QueryEscape(c.Domain) + ":" + url.QueryEscape(c.Path)
	all, err := s.Store.Limiters(name, []tb.Limit{c.Limit})
	if err != nil {
		return nil, err
	}
	return &limiter{shared: all[0].(*redis.Limiter)}, nil
}

// storeOptions returns the options of the store of a service. failure is what happens to a request
// that the store does not decide in time: "allow", "refuse" or "error".
func storeOptions(timeout time.Duration, failure string) []redis.Option {
	policy := redis.Refuse
	if failure == "allow" {
		policy = redis.Allow
	}
	return []redis.Option{
		redis.WithPrefix("tb:rls:"), redis.WithTimeout(timeout), redis.WithPolicy(policy),
	}
}

// all calls f with each rule: the rules of the configuration in its order, and then the overrides.
func (t *state) all(f func(*rule)) {
	for _, c := range t.config.Rules {
		f(t.rules[c])
	}
	if t.overrides != nil {
		t.overrides.all(f)
	}
}

// charge sets the charge of an entry.
func (l *limiter) charge(e *entry, cost float64) (err error) {
	if l.local != nil {
		e.local, err = l.local.Charge(e.key, cost)
		e.charge = &e.local
	} else {
		var c tb.Charge
		if c, err = l.shared.Charge(e.key, cost); err == nil {
			e.charge = c.(*redis.Charge)
		}
	}
	if err == nil && e.owes {
		e.charge.MayWait(math.MaxInt64)
	}
	return err
}

// setLimit returns what changes the limit, or an error if the limit is not possible.
func (l *limiter) setLimit(limit tb.Limit) (change func() error, err error) {
	if l.local != nil {
		return func() error { return l.local.SetLimit(limit) }, limit.Validate()
	}
	_, err = l.shared.Tier(limit)
	return func() error { return l.shared.SetLimit(limit) }, err
}
