package httplimit

import (
	"fmt"
	"slices"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// ladder is a list of groups: the rules with the same Match. Only its first group that has a rule
// that applies is used. The three evaluations are three ways to make ladders.
type ladder [][]*rule

// newLadders arranges rules as the evaluation demands.
func newLadders(e policy.Evaluation, rules []*rule) (all []ladder) {
	type groupID struct{ ladder, group string }
	ladders, groups := map[string]int{}, map[groupID]int{} // indexes
	for _, r := range rules {
		id := groupID{"", r.base} // FirstMatch: one ladder, and each rule is a group
		switch e {
		case policy.AllMatch: // each rule is a ladder
			id.ladder = r.base
		case policy.Ladders:
			keys := policy.CanonicalKeys(r.Keys)
			slices.Sort(keys)
			id = groupID{fmt.Sprintf("%q", keys), r.matchText()}
		}
		i, ok := ladders[id.ladder]
		if !ok {
			i = len(all)
			ladders[id.ladder] = i
			all = append(all, nil)
		}
		j, ok := groups[id]
		if !ok {
			j = len(all[i])
			groups[id] = j
			all[i] = append(all[i], nil)
		}
		all[i][j] = append(all[i][j], r)
	}
	return all
}

// matchText is the same text for two rules if and only if their Match is the same.
func (r *rule) matchText() string {
	pairs := map[string]string{}
	for k, v := range r.Match {
		pairs[policy.CanonicalKey(k)] = v
	}
	return fmt.Sprintf("%q", pairs) // in the order of the keys
}
