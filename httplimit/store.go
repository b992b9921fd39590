package httplimit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
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
	// called, and keeps its tokens, but not more than the new capacity, and its debt. The name of
	// the rule is its set, name and keys as ASCII without braces. Processes with the same name share
	// the buckets. Limiters is called for each rule that is new, before the rule is in force, and one
	// charge of the key "" is made and not taken.
	//
	// Other stores than a Memory get the keys as text, so that an operator finds them: the values of
	// the parts with commas between them. An address or a network is as in 192.0.2.1 or
	// 2001:db8::/64, or "unknown". In another value, letters, digits and -._~:/@+ stand for
	// themselves, and every other byte is a percent sign and two digits, as in a URL. A value of more
	// than 128 bytes is sha256(…), its hash in hexadecimal.
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

// ruleState is what a rule keeps when the policy changes: its buckets and its counts.
type ruleState struct {
	limiters []tb.StoreLimiter    // by the tier of the table
	table    *cas.Limiter[string] // has the buckets if they are in a Memory, and is nil otherwise

	tiers  map[string]int // by name, from 1 on; a request without one has 0; needs Limiter.reload
	counts [stripes]counts
	delays delayCounts

	settled, estimated atomic.Uint64 // settlements
}

// newState returns a state for r. Its buckets are full, unless the store has them already.
func (l *Limiter) newState(r *rule) (s *ruleState, err error) {
	s = &ruleState{tiers: map[string]int{}}
	limits := s.place(r)
	if s.limiters, err = l.store.Limiters(r.id, limits); err != nil {
		return nil, err
	}
	if len(s.limiters) != len(limits) || slices.Contains(s.limiters, nil) {
		return nil, nonsense(l.store, "%d limiters, want %d, and none that is nil", len(s.limiters),
			len(limits))
	}
	if m, ok := s.limiters[0].(*memoryLimiter); ok {
		s.table = m.Limiter
	}
	charge, err := s.limiters[0].Charge("", r.price.fallback)
	if err == nil && charge == nil {
		err = nonsense(l.store, "no charge")
	}
	return s, err
}

// ruleID returns the name of a rule in a Store. Two rules with the same id have the same buckets:
// one of this policy and one of the next, of another process or of a snapshot. An id without set
// has one colon.
func ruleID(set, name string, keys []string) string {
	keys = policy.CanonicalKeys(keys)
	for i, key := range keys {
		keys[i] = url.QueryEscape(key)
	}
	id := url.QueryEscape(name) + ":" + strings.Join(keys, ",")
	if set == "" {
		return id
	}
	return url.QueryEscape(set) + ":" + id
}

// prepare makes the charge of e's cost on e's bucket. A charge of a Memory is in e, so that it
// allocates nothing: call.entries must not grow while it is in use. Costs are validated with the
// policy and when they are read, so a Memory returns no error for them. Another store may keep the
// key, so it gets a copy.
func (c *call) prepare(e *entry) (charge tb.Charge, err error) {
	if m, ok := e.limiters[e.tierIndex].(*memoryLimiter); ok {
		m.charge(&e.inMemory, e.key, e.cost)
		e.charge, charge = &e.inMemory, &e.inMemory
	} else {
		e.charge, err = e.limiters[e.tierIndex].Charge(strings.Clone(e.key), e.cost)
		if charge = e.charge; err == nil && charge == nil {
			err = nonsense(c.l.store, "no charge")
		}
		if err != nil {
			return nil, err
		}
	}
	if e.OnLimit == policy.Delay {
		c.letWait(e)
	}
	return charge, nil
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

// nonsense returns the error of a store that returns what no store may return.
func nonsense(s Store, format string, args ...any) error {
	if r, ok := s.(remote); ok {
		s = r.Store
	}
	return fmt.Errorf("the store %T returns nonsense: "+format, append([]any{s}, args...)...)
}

// makesSense reports whether d can be the decision of a bucket.
func makesSense(d tb.Decision) bool {
	return d.Remaining >= 0 && d.RetryAfter >= 0 && d.Allowed == (d.RetryAfter == 0)
}

// makeSense reports whether decisions can be the answer to a number of charges.
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
