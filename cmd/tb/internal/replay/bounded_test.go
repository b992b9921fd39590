package replay

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func key(n int) []byte { return fmt.Appendf(nil, "key %d", n) }

func TestClientsAreExactUpToTheBound(t *testing.T) {
	c := newClients(100)
	for n := range 100 {
		c.add(key(n), 0)
		c.add(key(n), uint64(n%4))
		c.add(key(n), 0)
	}
	if c.all.total() != 100 || !c.all.exact() ||
		c.refused.with(0) != 50 || c.refused.with(1) != 50 {
		t.Errorf("%d keys, refused %d and %d, exact %v; want 100, 50, 50, true",
			c.all.total(), c.refused.with(0), c.refused.with(1), c.all.exact())
	}
	for n := range 1000 {
		c.add(key(n), 0)
	}
	if c.all.exact() || c.refused.with(0) != 50 {
		t.Errorf("beyond the bound: exact %v, %d refused; want false and still 50",
			c.all.exact(), c.refused.with(0))
	}
}

func TestClientsEstimate(t *testing.T) {
	const bound, keys = 4096, 300_000
	c := newClients(bound)
	for n := range keys {
		refused := uint64(0)
		if n%3 == 0 {
			refused = 1
		}
		c.add(key(n), refused)
		if len(c.all.masks) > bound || len(c.refused.masks) > bound {
			t.Fatalf("after %d keys: %d entries and %d, want at most %d",
				n+1, len(c.all.masks), len(c.refused.masks), bound)
		}
	}
	const tolerance = 5 * 0.022 // standard errors of a sample of half the bound
	if off := math.Abs(float64(c.all.total())/keys - 1); off > tolerance {
		t.Errorf("%d keys of %d: off by %.3f", c.all.total(), keys, off)
	}
	if off := math.Abs(float64(c.refused.with(0))/(keys/3) - 1); off > tolerance {
		t.Errorf("%d keys refused of %d: off by %.3f", c.refused.with(0), keys/3, off)
	}
}

func TestRankingListsTheMostRefused(t *testing.T) {
	r := newRanking(3)
	refuse := func(n int) *tracked {
		e := r.see(key(n))
		e.Count++
		e.Value.add(0, false)
		return e
	}
	for _, n := range []int{3, 2, 2, 1} {
		refuse(n)
	}
	r.see(key(4)).Value.add(0, true) // replaces 3: as seldom refused as 1, and seen before it
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

func TestLevelsOfAReplacedKeyAreDropped(t *testing.T) {
	r := newRanking(1)
	r.see(key(1)).Value.levels.add(7, 0, 5)
	if v := r.see(key(2)).Value; len(v.levels.points) != 0 || v.requests != 1 {
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

func TestPeakSecond(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds []int64
		want    uint32
	}{
		{"one", []int64{1000}, 1},
		{"in order", []int64{1000, 1000, 1001, 1001, 1001, 1002}, 3},
		{"out of order", []int64{1000, 1001, 1000, 1001, 1002, 1001, 1000, 1001}, 4},
		{"63 s late", []int64{1000, 1063, 1000}, 2},
		{"64 s late does not count", []int64{1000, 1064, 1000}, 1},
		{"a window later", []int64{1000, 1064, 1064}, 2},
		{"forgotten at each step", []int64{1000, 1000, 1040, 1080, 1064}, 2},
		{"a long gap", []int64{1000, 1000, 1_000_000, 1_000_000}, 2},
	} {
		var p peak
		for _, s := range tt.seconds {
			p.add(s)
		}
		if p.most != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, p.most, tt.want)
		}
	}
}
