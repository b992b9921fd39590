package httplimit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Store has the buckets of all rules, in this process or in another place. Memory and *redis.Store
// of tb/redis are stores: see WithStore.
type Store interface {
	// Limiters returns a limiter for each of the limits of a rule: Rule.Limit and the limits of
	// its Tiers. All of them have the same buckets: a bucket has the limit of the limiter that is
	// called, and keeps its tokens, up to the new capacity, and its debt. The name of the rule is its
	// set, name and keys as ASCII without braces. Processes with the same name share the buckets.
	// Limiters is called before a rule is in force. One charge of the key "" is made and not taken.
	//
	// Other stores than a Memory get the keys as text, so that an operator finds them: the values of
	// the parts with commas between them, escaped as in a URL. docs/redis.md has the form.
	Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error)
	// TakeAll is tb.TakeAll for charges of these limiters. The context ends after the time of
	// WithTimeout, and not when the client disconnects. A charge that was not asked, because another
	// one has refused, has the zero Decision. The time is a reading of the clock of
	// WithLimiterOptions. A store with a clock of its own ignores it, and RetryAfter and Delay count
	// from its decision.
	//
	// An answer that makes no sense, such as a refusal without RetryAfter, is an error: see
	// WithFailClosed.
	TakeAll(ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision) (
		decisions []tb.Decision, allowed bool, err error)
}

// prepare makes the charge of e's cost on e's bucket. A charge of a Memory is in e, so that it
// allocates nothing: call.entries must not grow while it is in use. Costs are validated with the
// policy and when they are read, so a Memory returns no error for them. Another store may keep the
// key, so it gets a copy.
func (c *call) prepare(e *entry) (charge tb.Charge, err error) {
	if m, ok := e.limiters[e.tierIndex].(*memoryLimiter); ok {
		_ = m.ChargeInPlace(&e.inMemory, e.key, e.cost)
		e.charge, charge = &e.inMemory, &e.inMemory
	} else {
		e.charge, err = c.l.charge(e.limiters[e.tierIndex], strings.Clone(e.key), e.cost)
		if charge = e.charge; err != nil {
			return nil, err
		}
	}
	if e.keeps > 0 {
		e.charge.Keep(e.keeps)
	}
	switch {
	case e.OnLimit == policy.Delay:
		e.charge.MayWait(min(e.MaxDelay, c.patience))
	case e.Block > 0 && !e.price.inResponse:
		e.charge.HoldOnRefusal(e.Block)
	}
	return charge, nil
}

// accept makes d the decision of e. While a reload changes the limit, d may be a decision of the
// next one, but no field has more tokens than the burst beside it.
func (e *entry) accept(d tb.Decision) {
	d.Remaining = min(d.Remaining, e.Limit.Capacity)
	e.decision, e.delay = d, 0
}

// readDelay reads how long a granted request must wait for e's rule.
func (c *call) readDelay(e *entry) error {
	if e.OnLimit != policy.Delay || !e.decision.Allowed {
		return nil
	}
	delay := e.charge.Delay()
	if delay < 0 || delay > e.MaxDelay {
		return nonsense(c.l.store, "a delay of %v, want at most %v", delay, e.MaxDelay)
	}
	e.delay = delay
	return nil
}

func (l *Limiter) charge(
	limiter tb.StoreLimiter, key string, cost float64,
) (charge tb.StoreCharge, err error) {
	if charge, err = limiter.Charge(key, cost); err == nil && charge == nil {
		err = nonsense(l.store, "no charge")
	}
	return charge, err
}

// remote is a Store that may be late. A client cannot make it fail.
type remote struct {
	Store
	timeout time.Duration // 0 for none
}

func (s remote) TakeAll(
	ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	ctx = context.WithoutCancel(ctx)
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	decisions, allowed, err = s.Store.TakeAll(ctx, t, charges, buf)
	if err == nil && !makeSense(decisions, allowed, len(charges)) {
		err = nonsense(s, "%+v to %d charges, allowed %v", decisions, len(charges), allowed)
	}
	return decisions, allowed, err
}

func nonsense(s Store, format string, args ...any) error {
	if r, ok := s.(remote); ok {
		s = r.Store
	}
	return fmt.Errorf("the store %T returns nonsense: "+format, append([]any{s}, args...)...)
}

func makesSense(d tb.Decision) bool {
	return d.Remaining >= 0 && d.RetryAfter >= 0 && d.Allowed == (d.RetryAfter == 0)
}

func makeSense(decisions []tb.Decision, allowed bool, charges int) bool {
	refused := false
	for _, d := range decisions {
		switch {
		case !allowed && d == tb.Decision{}: // was not asked
		case !makesSense(d):
			return false
		default:
			refused = refused || !d.Allowed
		}
	}
	return len(decisions) == charges && refused != allowed
}

// Memory returns a Store that has a table of tb/cas for each rule, in this process. The options are
// of the tables. A Limiter without WithStore has a Memory with the options of WithLimiterOptions.
func Memory(opts ...tb.Option) Store { return memory(opts) }

type memory []tb.Option

// Limiters implements Store. It makes a new table in each call, whatever the name of the rule is.
func (m memory) Limiters(_ string, limits []tb.Limit) (all []tb.StoreLimiter, err error) {
	var table *cas.Limiter[string]
	if len(limits) == 1 {
		table, err = cas.New[string](limits[0], m...)
	} else {
		table, err = cas.NewTiered[string](limits, m...)
	}
	for i := range limits {
		all = append(all, &memoryLimiter{table, i, len(limits) > 1})
	}
	return all, err
}

func (memory) TakeAll(
	_ context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	return tb.TakeAll(t, charges, buf)
}

type memoryLimiter struct {
	*cas.Limiter[string]
	tier   int
	tiered bool // the table has several tiers
}

// Charge returns a charge on key's bucket, which moves to the tier.
func (l *memoryLimiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	c := new(cas.Charge[string])
	return c, l.ChargeInPlace(c, key, cost)
}

// ChargeInPlace is Charge in a place of the caller. Package outbound calls it, too.
func (l *memoryLimiter) ChargeInPlace(
	c *cas.Charge[string], key string, cost float64,
) (err error) {
	if l.tiered {
		*c, err = l.ChargeIn(l.tier, key, cost)
	} else {
		*c, err = l.Limiter.Charge(key, cost)
	}
	return err
}

func (l *memoryLimiter) Reset(_ context.Context, key string) error {
	l.Limiter.Reset(key)
	return nil
}

func (l *memoryLimiter) SetLimit(limit tb.Limit) error { return l.SetTier(l.tier, limit) }

func (l *memoryLimiter) Limit() tb.Limit { return l.Tiers()[l.tier] }
