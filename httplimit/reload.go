package httplimit

import (
	"errors"
	"fmt"
	"iter"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// successors yields each rule of p with the rule of before that has its identity, or nil.
func (p *compiled) successors(before *compiled) iter.Seq2[*rule, *rule] {
	return func(yield func(*rule, *rule) bool) {
		old := map[identity]*rule{}
		if before != nil {
			for _, r := range before.rules {
				old[r.identity] = r
			}
		}
		for _, r := range p.rules {
			if !yield(r, old[r.identity]) {
				return
			}
		}
	}
}

// limitSetter is a limiter whose limit can change while it is used. The limiters of tb/cas and
// tb/mutex are.
type limitSetter interface {
	SetLimit(limit tb.Limit) error
}

// inherit returns the state of r, which takes the place of old. It has the limits of old if it is
// the state of old. old may be nil.
func (l *Limiter) inherit(r, old *rule) (*ruleState, error) {
	if l.newLimiter != nil {
		if err := r.checkBare(); err != nil {
			return nil, err
		}
	}
	switch {
	case old == nil:
		return l.newState(r)
	case l.newLimiter != nil:
		if _, ok := old.limiter.(limitSetter); !ok && r.Limit != old.Limit {
			return l.newState(r)
		}
		return old.ruleState, nil
	case old.holds(r):
		return old.ruleState, nil
	}
	s, err := l.newState(r)
	if err != nil || l.store != nil {
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
// meanwhile are not charged to s, and responses that end later are settled in old only.
func (s *ruleState) copyBuckets(old *ruleState) error {
	if s.byAddr != nil {
		return copyTable(s, s.byAddr, old, old.byAddr)
	}
	return copyTable(s, s.byString, old, old.byString)
}

func copyTable[K comparable](
	s *ruleState, l *cas.Limiter[K], old *ruleState, from *cas.Limiter[K],
) error {
	indexes := map[int]int{}
	if s.tiers != nil && old.tiers != nil {
		for name, i := range old.tiers.index {
			indexes[i] = s.tiers.index[name]
		}
	}
	return l.Restore(func(yield func(K, tb.State) bool) {
		for key, state := range from.Snapshot() {
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
		err := r.setLimits(old, func(set func(tb.Limit) error, next, last tb.Limit) error {
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

// setLimits calls change for each limit of the rule's limiter, which is one of old.
func (r *rule) setLimits(
	old *rule, change func(set func(tb.Limit) error, next, last tb.Limit) error,
) error {
	if r.tiers == nil {
		l, ok := r.limiter.(limitSetter)
		if !ok { // so the limits are equal
			return nil
		}
		return change(l.SetLimit, r.Limit, old.now().Limit)
	}
	l := r.limiter.(tierSetter)
	tiers := l.Tiers()
	err := change(l.SetLimit, r.Limit, tiers[0])
	for name, i := range r.ruleState.tiers.index {
		limit, ok := r.Tiers.Limits[name]
		if !ok { // its keys have the limit of the rule from now on
			limit = r.Limit
		}
		if err == nil {
			err = change(func(limit tb.Limit) error { return l.SetTier(i, limit) }, limit, tiers[i])
		}
	}
	return err
}

// tierSetter is a limiter of tb/cas with tiers.
type tierSetter interface {
	limitSetter
	SetTier(tier int, limit tb.Limit) error
	Tiers() []tb.Limit
}
