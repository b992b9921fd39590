package httplimit

import (
	"slices"
	"testing"
)

func TestAllOrNothing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("user", `["header:u"]`, 3, ""),
		jsonRule("tenant", `["header:t"]`, 5, ""), jsonRule("global", `[]`, 9, "")))
	left := func(u string) (all []int) {
		for _, e := range s.Explain(request("U: "+u, "T: 1")) {
			// The tokens left now, and not after the request.
			n := e.Remaining
			if e.Allowed {
				n++
			}
			all = append(all, n)
		}
		return all
	}
	s.granted(3, "U: a", "T: 1")
	for range 5 {
		s.get("U: a", "T: 1") // refused for the user: tenant and global are not charged
	}
	if got := left("a"); !slices.Equal(got, []int{0, 2, 6}) {
		t.Errorf("%v are left", got)
	}
	s.granted(2, "U: b", "T: 1") // refused for the tenant: the user is not charged
	if got := left("b"); !slices.Equal(got, []int{1, 0, 4}) {
		t.Errorf("%v are left", got)
	}
	for i, want := range []RuleStats{
		{Granted: 5, Refused: 6},
		{Granted: 5, Refused: 1},
		{Granted: 5},
	} {
		if got := s.Stats()[i]; got.Granted != want.Granted || got.Refused != want.Refused {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
