package replay

import (
	"slices"
	"testing"
)

func TestRankingListsTheMostRefused(t *testing.T) {
	r := newRanking(3)
	refuse := func(n int) *tracked {
		e := r.track(key(n))
		e.Count++
		e.Value.add(0, false)
		return e
	}
	for _, n := range []int{3, 2, 2, 1} {
		refuse(n)
	}
	r.track(key(4)).Value.add(0, true) // replaces 3: as seldom refused as 1, and seen before it
	var got []string
	for _, e := range r.most(5) {
		got = append(got, e.Key)
	}
	if want := []string{"key 2", "key 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if e := refuse(4); e.Count != 2 || e.Value.refused != 1 {
		t.Errorf("key 4 has a count of %v and %d refusals, want 2, as it inherits 1, and 1",
			e.Count, e.Value.refused)
	}
}

func TestLongestRun(t *testing.T) {
	var s keyStats
	for _, granted := range []bool{false, false, true, false, false, false, true, false} {
		s.add(0, granted)
	}
	if s.refused != 6 || s.longestRun != 3 {
		t.Errorf("%d refused, longest run %d; want 6 and 3", s.refused, s.longestRun)
	}
}
