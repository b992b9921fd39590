package httplimit

import (
	"errors"
	"fmt"
	"iter"

	"github.com/seed-181794aa/ratelimit/tb"
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

// canBecome reports whether next can keep the state of r.
func (r *rule) canBecome(next *rule) bool {
	_, ok := r.limiter.(limitSetter)
	return ok || r.Limit == next.Limit
}

// setLimits gives the limits of p to the limiters that p has taken over from before. If one of
// them returns an error, those that have changed get their limits of before again.
func (p *compiled) setLimits(before *compiled) error {
	var changed []*rule // of before
	for r, old := range p.successors(before) {
		if old == nil || old.ruleState != r.ruleState || old.Limit == r.Limit {
			continue
		}
		err := r.limiter.(limitSetter).SetLimit(r.Limit)
		if err == nil {
			changed = append(changed, old)
			continue
		}
		for _, c := range changed {
			err = errors.Join(err, c.limiter.(limitSetter).SetLimit(c.Limit))
		}
		return fmt.Errorf("rule %q: %w", r.Name, err)
	}
	return nil
}
