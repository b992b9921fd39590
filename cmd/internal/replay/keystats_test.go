package replay

import (
	"slices"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
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

func TestWindowsOfAReplacedKeyAreDropped(t *testing.T) {
	r, l := newRanking(1), newLens(mustRate(t, "1"), 5)
	for _, ns := range []int64{7e9, 70e9} {
		l.add(&r.track(key(1)).Value.zoom, ns, 1, tb.Decision{Remaining: 0})
	}
	v := &r.track(key(2)).Value
	if l.add(&v.zoom, 80e9, 1, tb.Decision{Allowed: true, Remaining: 4}); v.requests != 1 ||
		v.zoom.mostRefused().refused != 0 || v.zoom.present.start != 80e9 || v.zoom.level != 4 {
		t.Errorf("the new key begins with %+v", v)
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
