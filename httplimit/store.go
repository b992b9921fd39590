package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Store has the buckets of all rules in another place than this process, such as a *redis.Store of
// tb/redis: see WithStore.
type Store interface {
	// Limiters returns a limiter for each of the limits of a rule: Rule.Limit and the limits of
	// its Tiers. All of them have the same buckets: a bucket has the limit of the limiter that is
	// called, and keeps its tokens, but not more than the new capacity, and its debt. The name of
	// the rule is its set, name and keys as ASCII without braces. Processes with the same name share
	// the buckets.
	//
	// Each limiter has the methods Charge(key string, cost float64) (tb.Charge, error),
	// SetLimit(tb.Limit) error and Limit() tb.Limit. Its charges have the methods Level, MayWait,
	// Delay and Settle, as charges of tb/cas have. A charge is used by one goroutine at a time, and
	// its methods return within a time that the store bounds. Limiters is called for each rule that is
	// new, before the rule is in force, and one charge of the key "" is made and not taken.
	Limiters(rule string, limits []tb.Limit) ([]tb.Limiter, error)
	// TakeAll is tb.TakeAll for charges of these limiters. The context ends after the time of
	// WithTimeout, and not when the client disconnects. A charge that was not asked, because another
	// one has refused, has the zero Decision. The time is a reading of the clock of
	// WithLimiterOptions. A store with a clock of its own ignores it, and RetryAfter and Delay count
	// from its decision.
	TakeAll(ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision) (
		decisions []tb.Decision, allowed bool, err error)
}

// ruleState is what a rule keeps when the policy changes: its limiter, in one of the first three
// fields, and its counts.
type ruleState struct {
	byAddr   *cas.Limiter[netip.Addr] // if the only key is ip:address
	byString *cas.Limiter[string]
	others   others

	limiter any        // the same limiter, for its optional methods
	tiers   *tierTable // nil without tiers; only newState and SetPolicy use it
	counts  [stripes]counts
	delays  delayCounts

	settlements settleCounts
}

// others is the limiters of a rule, one for each of its tiers, that are not of tb/cas.
type others []charger

type charger interface {
	// Charge returns a charge of a decimal number of tokens on key's bucket, and takes nothing yet.
	Charge(key string, cost float64) (tb.Charge, error)
}

// newState returns a state for r, with full buckets unless they are in a store.
func (l *Limiter) newState(r *rule) (s *ruleState, err error) {
	s = &ruleState{}
	switch {
	case l.newLimiter != nil:
		var bare tb.Limiter
		if bare, err = l.newLimiter(r.Rule); err == nil && bare == nil {
			err = errors.New("the function of WithLimiter returned nil")
		}
		s.others, s.limiter = others{bareLimiter{bare}}, bare
	case l.store != nil:
		s.others, err = newOthers(l.store, r, s.place(r))
		s.limiter = s.others
	default:
		err = s.newTables(r, l.limiterOptions)
	}
	return s, err
}

// newOthers returns the limiters that a store makes for a rule, after a check of their methods.
func newOthers(store Store, r *rule, limits []tb.Limit) (all others, err error) {
	limiters, err := store.Limiters(r.storeName(), limits)
	if err != nil {
		return nil, err
	}
	if len(limiters) != len(limits) {
		return nil, fmt.Errorf("the store has %d limiters, want %d", len(limiters), len(limits))
	}
	for _, x := range limiters {
		l, ok := x.(interface {
			charger
			limitSetter
			Limit() tb.Limit
		})
		if !ok {
			return nil, errors.New("the limiters of a store need Charge, SetLimit and Limit")
		}
		all = append(all, l)
	}
	charge, err := all[0].Charge("", r.price.fallback)
	if err != nil {
		return nil, err
	}
	if _, ok := charge.(interface {
		leveler
		waiter
		settler
	}); !ok {
		return nil, errors.New("the charges of a store need Level, MayWait, Delay and Settle")
	}
	return all, nil
}

// storeName returns the name of a rule in a Store. A name without set has one colon.
func (r *rule) storeName() string {
	keys := canonicals(r.Keys)
	for i, key := range keys {
		keys[i] = url.QueryEscape(key)
	}
	name := url.QueryEscape(r.Name) + ":" + strings.Join(keys, ",")
	if r.set == "" {
		return name
	}
	return url.QueryEscape(r.set) + ":" + name
}

// SetLimit sets the limit of tier 0.
func (o others) SetLimit(limit tb.Limit) error { return o.SetTier(0, limit) }

// SetTier sets the limit of a tier.
func (o others) SetTier(tier int, limit tb.Limit) error {
	return o[tier].(limitSetter).SetLimit(limit)
}

// Tiers returns the limits of all tiers.
func (o others) Tiers() (all []tb.Limit) {
	for _, l := range o {
		all = append(all, l.(interface{ Limit() tb.Limit }).Limit())
	}
	return all
}

// prepare makes the charge of e's cost on e's bucket. e.charge points into e, so call.entries
// must not grow while the charge is in use. Costs are validated with the policy and when they
// are read, so limiters return no error for them. A limiter outside of tb/cas may keep the key, so
// it gets a copy.
func (c *call) prepare(e *entry) (err error) {
	s := e.ruleState
	switch {
	case s.byAddr != nil:
		e.addrCharge = charge(s.byAddr, e, e.network)
		e.charge = &e.addrCharge
	case s.byString != nil:
		e.stringCharge = charge(s.byString, e, e.key)
		e.charge = &e.stringCharge
	default:
		if e.charge, err = s.others[e.tier].Charge(strings.Clone(e.key), e.cost); err != nil {
			return err
		}
		if b, ok := e.charge.(*bareCharge); ok {
			b.bareCall = c.newBareCall()
		}
	}
	c.letWait(e)
	return nil
}

// takeAll takes all charges, or none. A store has a clock of its own, so its decisions count from
// the time at which they have come.
func (c *call) takeAll() (allowed bool, err error) {
	if c.l.store == nil || len(c.charges) == 0 {
		c.decisions, allowed, err = tb.TakeAll(c.now, c.charges, c.decisions)
		return allowed, err
	}
	ctx := context.WithoutCancel(c.r.Context())
	if c.l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.l.timeout)
		defer cancel()
	}
	c.decisions, allowed, err = c.l.store.TakeAll(ctx, c.now, c.charges, c.decisions)
	c.now = c.l.clock()
	return allowed, err
}

// leveler is a charge that reports how full its bucket is. All charges of entries do.
type leveler interface {
	Level(t time.Time) (tb.Level, error)
}
