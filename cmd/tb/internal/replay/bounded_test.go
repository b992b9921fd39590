package replay

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
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

// decision is a request as top sees it.
type decision struct {
	key     int
	refused bool
}

func skewed(seed uint64, n, keys int) []decision {
	rng := rand.New(rand.NewPCG(seed, 0))
	zipf := rand.NewZipf(rng, 1.1, 2, uint64(keys-1))
	all := make([]decision, n)
	for i := range all {
		k := int(zipf.Uint64())
		all[i] = decision{k, rng.IntN(keys) > k || rng.IntN(10) == 0}
	}
	return all
}

func feed(top *top, decisions []decision) map[string]uint64 {
	refused := make(map[string]uint64)
	for _, d := range decisions {
		e := top.see(key(d.key))
		e.count(0, !d.refused)
		if d.refused {
			refused[e.key]++
		}
	}
	return refused
}

func TestTopIsExactUpToItsBound(t *testing.T) {
	top := newTop(200)
	want := feed(top, skewed(1, 20_000, 200))
	for _, e := range top.most(200) {
		if e.refused != want[e.key] || e.missed != 0 || e.partial {
			t.Errorf("%s: %d refused, %d missed, partial %v; want %d exactly",
				e.key, e.refused, e.missed, e.partial, want[e.key])
		}
		delete(want, e.key)
	}
	if len(want) != 0 {
		t.Errorf("not in the top: %v", want)
	}
}

// Beyond its bound, top must keep the guarantees of Space-Saving: the true count lies
// between refused and refused+missed, missed is at most a share of 1/max, and every key
// above that share is in it.
func TestTopKeepsItsGuarantees(t *testing.T) {
	const bound = 50
	for seed := range uint64(10) {
		top := newTop(bound)
		want := feed(top, skewed(seed, 30_000, 5_000))
		var all uint64
		for n := range maps.Values(want) {
			all += n
		}
		if len(top.byKey) != bound || len(top.order) != bound {
			t.Fatalf("%d entries, want %d", len(top.byKey), bound)
		}
		for _, e := range top.order {
			n := want[e.key]
			if e.refused > n || n > e.refused+e.missed || e.missed > all/bound {
				t.Errorf("seed %d, %s: %d refused, %d missed, truly %d of %d",
					seed, e.key, e.refused, e.missed, n, all)
			}
			delete(want, e.key)
		}
		for k, n := range want {
			if n > all/bound {
				t.Errorf("seed %d: %s with %d of %d refusals is not in the top", seed, k, n, all)
			}
		}
	}
}

func TestTopPrefersToForgetTheUnrefusedAndUnseen(t *testing.T) {
	top := newTop(3)
	top.see(key(1)).count(0, false)
	top.see(key(2)).count(0, true)
	top.see(key(3)).count(0, true)
	top.see(key(2))
	e := top.see(key(4)) // replaces 3: unrefused and seen before 2
	got := slices.Sorted(maps.Keys(top.byKey))
	if want := []string{"key 1", "key 2", "key 4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if e.missed != 0 || !e.partial || e.requests != 1 {
		t.Errorf("the new entry is %+v", e)
	}
}

func TestLongestRun(t *testing.T) {
	var e tracked
	for _, granted := range []bool{false, false, true, false, false, false, true, false} {
		e.count(0, granted)
	}
	if e.refused != 6 || e.longest != 3 {
		t.Errorf("%d refused, longest run %d; want 6 and 3", e.refused, e.longest)
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
