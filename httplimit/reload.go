package httplimit

import (
	"fmt"
	"iter"

	"github.com/seed-181794aa/ratelimit/tb"
)

// byID returns the rules of a policy by their ids. There are none if p is nil.
func (p *compiled) byID() map[string]*rule {
	all := map[string]*rule{}
	if p != nil {
		for _, r := range p.rules {
			all[r.id] = r
		}
	}
	return all
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

// holds reports whether the table of s can have the tiers of r. New names get the tiers that are
// left. A name that r does not have keeps its tier, because there may be buckets in it.
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
	indexes := map[int]int{}
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

// setLimits gives the limits of p to the limiters that p has taken over from before. If one of
// them returns an error, those that have changed get their limits of before again.
func (p *compiled) setLimits(before *compiled) error {
	var paused []*control
	var at *rule
	olds := before.byID()
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
				old.control.setPhase(stopped)
				paused = append(paused, old.control)
			}
			for l, limit := range at.wanted() {
				if !yield(l, limit) {
					return
				}
			}
		}
	})
	if err != nil {
		for _, c := range paused {
			c.setPhase(running)
		}
		return fmt.Errorf("rule %q: %w", at.Name, err)
	}
	return nil
}

// wanted yields the rule's limiters in use, each with the limit that it should have.
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
