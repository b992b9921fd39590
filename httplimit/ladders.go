package httplimit

import (
	"fmt"
	"slices"
	"strings"
)

// ladder is a list of groups: the rules with the same Match. Only its first group that has a rule
// that applies is used. The three evaluations are three ways to make ladders.
type ladder[R any] [][]R

// newLadders arranges rules as the evaluation demands. read returns what a rule says, and its name,
// which it has in common with the rules of its parent networks.
func newLadders[R any](
	e Evaluation, rules []R, read func(R) (r *Rule, name string),
) (all []ladder[R]) {
	type groupID struct{ ladder, group string }
	ladders, groups := map[string]int{}, map[groupID]int{} // indexes
	for _, x := range rules {
		r, name := read(x)
		id := groupID{"", name} // FirstMatch: one ladder, and each rule is a group
		switch e {
		case AllMatch: // each rule is a ladder
			id.ladder = name
		case Ladders:
			keys := canonicals(r.Keys)
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
		all[i][j] = append(all[i][j], x)
	}
	return all
}

// matchText is the same text for two rules if and only if their Match is the same.
func (r *Rule) matchText() string {
	var pairs []string
	for k, v := range r.Match {
		pairs = append(pairs, fmt.Sprintf("%q%q", canonical(k), v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "")
}

// unreachable returns the rules that never apply, because another rule of their ladder applies
// to all their requests: the other rule's name.
func (s *RuleSet) unreachable() map[*Rule]string {
	never := map[*Rule]string{}
	if s.Evaluation == AllMatch {
		return never
	}
	find := func(shadow bool) {
		var rules []*Rule
		for i := range s.Rules {
			if r := &s.Rules[i]; shadow || s.enforces(r) {
				rules = append(rules, r)
			}
		}
		read := func(r *Rule) (*Rule, string) { return r, r.Name }
		for _, l := range newLadders(s.Evaluation, rules, read) {
			for r, by := range unreachable(l) {
				if s.enforces(r) != shadow {
					never[r] = by
				}
			}
		}
	}
	find(false)
	find(true)
	return never
}

// maxCompared is how many rules of a ladder are compared with each other, because the work grows
// with their square.
const maxCompared = 1000

func unreachable(l ladder[*Rule]) map[*Rule]string {
	never := map[*Rule]string{}
	if len(slices.Concat(l...)) > maxCompared {
		return never
	}
	for i, g := range l {
		for _, r := range g {
			for _, before := range l[:i] {
				j := slices.IndexFunc(before, func(b *Rule) bool { return b.covers(r) })
				if j >= 0 && never[r] == "" {
					never[r] = before[j].Name
				}
			}
		}
	}
	return never
}

// covers reports whether r applies to every request that other applies to.
func (r *Rule) covers(other *Rule) bool {
	values := map[string]string{}
	for k, v := range other.Match {
		values[canonical(k)] = v
	}
	for k, v := range r.Match {
		if values[canonical(k)] != v {
			return false
		}
	}
	keys := canonicals(other.Keys)
	lacks := func(k string) bool { return isNotAddressKey(k) && !slices.Contains(keys, canonical(k)) }
	return r.hasAllKeys() || other.OnMissing == Skip && !slices.ContainsFunc(r.Keys, lacks)
}
