package httplimit

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// SetPolicy replaces the policy, from the next request on. A rule keeps its buckets and counts if
// its set, name and keys stay the same. If its limit changes, each bucket keeps its tokens, but not
// more than the new capacity, and its debt: see cas.Limiter.SetLimit. If p has an error, or a
// limiter of a Store does not take its limit, the policy and all limits stay as they were.
func (l *Limiter) SetPolicy(p *policy.Policy) error {
	l.reload.Lock()
	defer l.reload.Unlock()
	if err := l.replace(p); err != nil {
		return fmt.Errorf("httplimit: the policy stays as it was: %w", err)
	}
	return nil
}

// replace is SetPolicy for a caller that holds reload. The first policy takes the place of an empty
// one.
func (l *Limiter) replace(p *policy.Policy) error {
	before := l.policy.Load()
	olds := map[string]*rule{}
	for _, r := range before.rules {
		olds[r.id] = r
	}
	next, err := l.compile(p, olds)
	if err == nil {
		err = next.setLimits(olds)
	}
	if err != nil {
		return err
	}
	next.liveSettings = before.liveSettings
	for _, r := range next.rules {
		if r.control != nil {
			r.control.run(r)
		}
	}
	l.policy.Store(next)
	return nil
}

// SetFields changes which fields responses have, from the next request on.
func (l *Limiter) SetFields(f Fields) error {
	if err := f.prepare(); err != nil {
		return fmt.Errorf("httplimit: %w", err)
	}
	l.setLive(func(k *liveSettings) { k.fields = f })
	return nil
}

// SetSharedSecret changes the text of WithSharedSecret, from the next request on.
func (l *Limiter) SetSharedSecret(text string) {
	l.setLive(func(k *liveSettings) { k.shared = text })
}

func (l *Limiter) setLive(change func(*liveSettings)) {
	l.reload.Lock()
	defer l.reload.Unlock()
	next := *l.policy.Load()
	change(&next.liveSettings)
	l.policy.Store(&next)
}

// inherit returns the state of r, which takes the place of old. It has the limits of old if it is
// the state of old. old may be nil.
func (l *Limiter) inherit(r, old *rule) (*ruleState, error) {
	if old != nil && old.holds(r) {
		return old.ruleState, nil
	}
	s, err := l.newState(r)
	if err != nil || old == nil {
		return s, err
	}
	return s, s.copyBuckets(old.ruleState)
}

// holds reports whether s has the buckets that r needs, and whether its table can have the tiers of
// r. New names get the tiers that are left. A name that r does not have keeps its tier, because
// there may be buckets in it.
func (s *ruleState) holds(r *rule) bool {
	if r.tiers == nil {
		return len(s.limiters) == 1
	}
	for _, name := range r.Tiers.Names() {
		if _, ok := s.tiers[name]; !ok {
			if len(s.tiers)+1 == len(s.limiters) {
				return false
			}
			s.tiers[name] = len(s.tiers) + 1
		}
	}
	return true
}

// copyBuckets gives s, which is new, the buckets of another state. The requests that are granted
// meanwhile are not charged to s, and responses that end later are settled in old only. A store
// that is not a Memory has the buckets of old already.
func (s *ruleState) copyBuckets(old *ruleState) error {
	if s.table == nil || old.table == nil {
		return nil
	}
	indexes := map[int]int{} // the new index of each tier
	for name, i := range old.tiers {
		indexes[i] = s.tiers[name]
	}
	return s.table.Restore(func(yield func(string, tb.State) bool) {
		for key, state := range old.table.Snapshot() {
			state.Tier = indexes[state.Tier]
			if !yield(key, state) {
				return
			}
		}
	})
}

// setLimits gives the limits of p to the limiters that p has taken over from the old rules. If one
// of them returns an error, those that have changed get their old limits again.
func (p *compiled) setLimits(olds map[string]*rule) error {
	var paused []*rule
	var at *rule
	err := tb.SetLimits(func(yield func(tb.StoreLimiter, tb.Limit) bool) {
		for _, at = range p.rules {
			old := olds[at.id]
			if old == nil || old.ruleState != at.ruleState {
				continue
			}
			if old.control != nil {
				if at.control == old.control { // it has the limit
					continue
				}
				old.control.run(nil)
				paused = append(paused, old)
			}
			for l, limit := range at.wanted() {
				if !yield(l, limit) {
					return
				}
			}
		}
	})
	if err != nil {
		for _, r := range paused {
			r.control.run(r)
		}
		return fmt.Errorf("rule %q: %w", at.Name, err)
	}
	return nil
}

func (r *rule) wanted() iter.Seq2[tb.StoreLimiter, tb.Limit] {
	return func(yield func(tb.StoreLimiter, tb.Limit) bool) {
		if !yield(r.limiters[0], r.Limit) {
			return
		}
		for name, i := range r.ruleState.tiers {
			limit, ok := r.Tiers.Limits[name]
			if !ok { // its keys have the limit of the rule from now on
				limit = r.Limit
			}
			if !yield(r.limiters[i], limit) {
				return
			}
		}
	}
}

// control moves the rate of a rule. Two controls of one limiter exist while a policy replaces
// another. Only one of them is running.
type control struct {
	*adapt.Controller // nil while New makes it: the reload sets the first limit
	limiter           tb.StoreLimiter
	current           atomic.Pointer[rule] // the rule with its present limit

	mu      sync.Mutex
	running bool // otherwise the limiter may have another control
}

var errStopped = errors.New("httplimit: another policy sets the limit")

// addControl gives r, which takes the place of old, the control of its rate. old may be nil.
func (l *Limiter) addControl(r, old *rule) error {
	if r.Adaptive == (policy.Adaptive{}) {
		return nil
	}
	if old != nil && old.control != nil && old.ruleState == r.ruleState &&
		old.Adaptive == r.Adaptive && old.Limit == r.Limit {
		r.control = old.control
		return nil
	}
	c := &control{limiter: r.limiters[0]}
	c.current.Store(r)
	var err error
	config := r.AdaptConfig()
	config.Now = l.clock
	c.Controller, err = adapt.New(c, config)
	r.control = c
	return err
}

func (c *control) SetLimit(limit tb.Limit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Controller == nil {
		return nil
	}
	if !c.running {
		return errStopped
	}
	if err := c.limiter.SetLimit(limit); err != nil {
		return err
	}
	c.setCurrent(c.current.Load(), limit)
	return nil
}

func (c *control) setCurrent(r *rule, limit tb.Limit) {
	next := *r
	next.Limit = limit
	next.ruleText = newRuleText(next.label, &next.Rule)
	c.current.Store(&next)
}

// run starts the control, or goes on with it, for a rule that may have another label than before.
// It stops the control if r is nil.
func (c *control) run(r *rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running = r != nil; c.running {
		c.setCurrent(r, c.current.Load().Limit)
	}
}

func (r *rule) now() *rule {
	if r.control == nil {
		return r
	}
	return r.control.current.Load()
}
