package rls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/tb"
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
	buckets *buckets // may be nil if isFixed, and are not used then
	counts  *ruleCounts
	details *details // by path, if the path depends on the request

	limit *ratelimit.RateLimitResponse_RateLimit // as answers have it
	text  ruleText
}

// isFixed reports whether the rule grants every hit or refuses every hit. It keeps its buckets
// meanwhile, so that it grants no fresh burst when it has a limit again.
func (r *rule) isFixed() bool { return r.Limit == tb.Limit{} }

// buckets are the buckets of a rule, in a Store.
type buckets struct {
	tb.StoreLimiter
	paid   atomic.Int64 // when no bucket is in debt any more, in Unix seconds
	asked  atomic.Bool  // a hit or none came, as before a report
	warned atomic.Bool  // that hits may be weights: see call.setReport
}

// table is a limiter with its buckets in memory.
type table interface {
	Level(ctx context.Context, key string) (tb.Level, error)
	Stats() tb.Stats
}

// owe records that a bucket is in debt until a time in Unix seconds.
func (b *buckets) owe(until int64) {
	for paid := b.paid.Load(); paid < until && !b.paid.CompareAndSwap(paid, until); {
		paid = b.paid.Load()
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
		after.overrides = &overrides{service: s, rules: map[override]*brought{}}
	}
	var errs []error
	for _, c := range next.Rules {
		r, err := s.newRule(c, before.byID[c.ID])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Place, err))
			continue
		}
		after.rules[c], after.byID[c.ID] = r, r
	}
	err := errors.Join(errs...)
	if err == nil {
		err = after.setLimits()
	}
	if err == nil {
		s.state.Store(after)
	}
	return err
}

// setLimits gives the limits of the rules to the buckets that they continue. If a limit is not
// possible, all buckets have their limits back.
func (t *state) setLimits() error {
	var at *config.Rule
	err := tb.SetLimits(func(yield func(tb.StoreLimiter, tb.Limit) bool) {
		for _, at = range t.config.Rules {
			if r := t.rules[at]; !r.isFixed() && !yield(r.buckets, at.Limit) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", at.Place, err)
	}
	return nil
}

// newRule returns a rule that continues the rule before, which may be nil.
func (s *Service) newRule(c *config.Rule, before *rule) (r *rule, err error) {
	r = &rule{
		Rule: c, text: newRuleText(c),
		limit: &ratelimit.RateLimitResponse_RateLimit{
			Name: c.Name, RequestsPerUnit: c.RequestsPerUnit, Unit: c.Unit,
		},
	}
	if before != nil {
		r.counts, r.details, r.buckets = before.counts, before.details, before.buckets
	}
	if r.counts == nil {
		r.counts, r.details = new(ruleCounts), new(details)
	}
	if r.buckets == nil && !r.isFixed() {
		r.buckets, err = s.newBuckets(c)
	}
	return r, err
}

// newBuckets returns the buckets of a rule. All processes with one store and the same descriptors
// share them, also if the limits differ during a reload.
func (s *Service) newBuckets(c *config.Rule) (*buckets, error) {
	name := url.QueryEscape(c.Domain) + ":" + url.QueryEscape(c.Path)
	all, err := s.Store.Limiters(name, []tb.Limit{c.Limit})
	if err != nil {
		return nil, err
	}
	return &buckets{StoreLimiter: all[0]}, nil
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
func (b *buckets) charge(e *entry) (err error) {
	if e.charge, err = b.Charge(e.key, e.cost); err == nil && e.kind == report {
		l := e.rule.Limit
		wait := maxDebt * float64(l.Capacity) * float64(l.Per) / float64(l.Tokens)
		e.charge.MayWait(time.Duration(min(math.Ceil(wait), 1<<62)))
	}
	return err
}

// maxDebt bounds a debt, in bursts. So a client waits for as many units at most, and in
// envoyproxy/ratelimit for one.
const maxDebt = 2
