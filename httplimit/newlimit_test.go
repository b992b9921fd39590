package httplimit

import (
	"slices"
	"testing"
)

// A policy that is rejected changes nothing, not even one limit: neither if it has an error, nor if
// a new limiter cannot be made, nor if one of several limiters does not take its limit.
func TestRejectedReloadChangesNoLimit(t *testing.T) {
	rules := func(a, b, c int, more ...string) string {
		return jsonRules("", append(more, jsonRule("a", "[]", a, ""), jsonRule("b", "[]", b, ""),
			jsonRule("c", "[]", c, ""))...)
	}
	s := newSite(t, rules(10, 20, 30), WithStore(referenceStore{
		t: t, before: func(step, rule string) error {
			if step == "limiters" && rule == "broken:" {
				return errDown
			}
			return nil
		},
	}))
	capacities := func() (all []int) {
		for _, st := range s.Stats() {
			all = append(all, st.Limiter.(referenceTier).Limit().Capacity)
		}
		return all
	}
	for _, policy := range []string{
		rules(11, 21, unlucky), rules(unlucky, 21, 31),
		rules(11, 21, 31, jsonRule("broken", "[]", 1, "")), rules(11, 21, 0),
	} {
		p, err := ParsePolicy([]byte(policy))
		if err == nil {
			err = s.SetPolicy(p)
		}
		if err == nil {
			t.Errorf("%s is accepted", policy)
		}
		if got := capacities(); !slices.Equal(got, []int{10, 20, 30}) {
			t.Errorf("%v: the limits are %v", err, got)
		}
	}
	s.reload(rules(11, 21, 31))
	if got := capacities(); !slices.Equal(got, []int{11, 21, 31}) {
		t.Errorf("%v", got)
	}
}
