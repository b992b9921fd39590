package httplimit

import (
	"errors"
	"fmt"
	"iter"

	"github.com/seed-181794aa/ratelimit/tb"
)

// successors yields each rule of p with the rule of before that has its id, or nil.
func (p *compiled) successors(before *compiled) iter.Seq2[*rule, *rule] {
	return func(yield func(*rule, *rule) bool) {
		old := map[string]*rule{}
		if before != nil {
			for _, r := range before.rules {
				old[r.id] = r
			}
		}
		for _, r := range p.rules {
			if !yield(r, old[r.id]) {
				return
			}
		}
	}
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
	if s.tiers == nil || r.tiers == nil {
		return s.tiers == nil && r.tiers == nil
	}
	for _, name := range r.Tiers.names() {
		if _, ok := s.tiers.index[name]; !ok {
			if len(s.tiers.index)+1 == s.tiers.count {
				return false
			}
			s.tiers.index[name] = len(s.tiers.index) + 1
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
	if s.tiers != nil && old.tiers != nil {
		for name, i := range old.tiers.index {
			indexes[i] = s.tiers.index[name]
		}
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
	var undo []func() error
	var paused []*control
	for r, old := range p.successors(before) {
		if old == nil || old.ruleState != r.ruleState {
			continue
		}
		if old.control != nil {
			if r.control == old.control { // it has the limit
				continue
			}
			old.control.setPhase(stopped)
			paused = append(paused, old.control)
		}
		err := r.setLimits(func(set func(tb.Limit) error, next, last tb.Limit) error {
			if next == last {
				return nil
			}
			err := set(next)
			if err == nil {
				undo = append(undo, func() error { return set(last) })
			}
			return err
		})
		if err != nil {
			for _, f := range undo {
				err = errors.Join(err, f())
			}
			for _, c := range paused {
				c.setPhase(running)
			}
			return fmt.Errorf("rule %q: %w", r.Name, err)
		}
	}
	return nil
}

// setLimits calls change for each limit of the rule's limiters, which an old rule had before.
func (r *rule) setLimits(change func(set func(tb.Limit) error, next, last tb.Limit) error) error {
	first := r.limiters[0]
	err := change(first.SetLimit, r.Limit, first.Limit())
	if r.tiers == nil {
		return err
	}
	for name, i := range r.ruleState.tiers.index {
		limit, ok := r.Tiers.Limits[name]
		if !ok { // its keys have the limit of the rule from now on
			limit = r.Limit
		}
		if err == nil {
			l := r.limiters[i]
			err = change(l.SetLimit, limit, l.Limit())
		}
	}
	return err
}
