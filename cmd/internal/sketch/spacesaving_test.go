package sketch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// count counts a key once and sets the Value of a new entry.
func count(s *Summary[int], key string) *Entry[int] {
	e, added := s.See([]byte(key))
	if added {
		e.Value = 0
	}
	e.Count++
	e.Value++
	return e
}

// skewed returns n keys, few of them often and many seldom.
func skewed(seed uint64, n, keys int) (all []string) {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.1, 2, uint64(keys-1))
	for range n {
		all = append(all, fmt.Sprint("key ", zipf.Uint64()))
	}
	return all
}

func keys[V any](s *Summary[V]) (all []string) {
	for e := range s.All() {
		all = append(all, e.Key)
	}
	slices.Sort(all)
	return all
}

// Beyond the bound the true count lies between what was counted and Count, which are at most a
// share of 1/bound apart, and every key above that share is tracked.
func TestGuaranteesBeyondTheBound(t *testing.T) {
	const bound, all = 50, 30_000
	for seed := range uint64(10) {
		s, want := NewSummary[int](bound), make(map[string]int)
		for _, key := range skewed(seed, all, 5_000) {
			count(s, key)
			want[key]++
		}
		if s.Len() != bound || len(s.byKey) != bound {
			t.Fatalf("%d entries and %d keys, want %d", s.Len(), len(s.byKey), bound)
		}
		for e := range s.All() {
			n := float64(want[e.Key])
			if own := float64(e.Value); own > n || n > e.Count || e.Count-own > all/bound {
				t.Errorf("seed %d: %+v, truly %v of %d", seed, e, n, all)
			}
			delete(want, e.Key)
		}
		for key, n := range want {
			if n > all/bound {
				t.Errorf("seed %d: %s with %d of %d is not tracked", seed, key, n, all)
			}
		}
	}
}

func TestTheLowestAndLongestUnseenIsReplaced(t *testing.T) {
	s := NewSummary[int](3)
	count(s, "a")
	s.See([]byte("b"))
	s.See([]byte("c"))
	s.See([]byte("b"))
	e, added := s.See([]byte("d")) // replaces c: as low as b, and seen before b
	if got := keys(s); !slices.Equal(got, []string{"a", "b", "d"}) || !added {
		t.Errorf("got %q, added %v", got, added)
	}
	if e.Key != "d" || e.Count != 0 || !e.Partial {
		t.Errorf("the new entry is %+v", e)
	}
	count(s, "b")
	e, added = s.See([]byte("d"))
	if added {
		t.Error("a tracked key was added")
	}
	e.Count += 2
	e, _ = s.See([]byte("e")) // replaces a: as low as b, and seen before b
	if got := keys(s); !slices.Equal(got, []string{"b", "d", "e"}) || e.Count != 1 {
		t.Errorf("got %q, the new entry is %+v", got, e)
	}
}

func TestScaleKeepsTheOrder(t *testing.T) {
	s := NewSummary[int](3)
	for _, key := range []string{"a", "b", "b", "c", "c", "c"} {
		count(s, key)
		s.Scale(0.5)
	}
	e, _ := s.See([]byte("d"))
	if got := keys(s); !slices.Equal(got, []string{"b", "c", "d"}) || e.Count != 1./64 {
		t.Errorf("got %q, a count of %v", got, e.Count)
	}
}

func TestRemove(t *testing.T) {
	s := NewSummary[int](3)
	for _, key := range []string{"a", "b", "b", "c", "c", "c"} {
		count(s, key)
	}
	s.Remove("b")
	s.Remove("b")
	s.Remove("never seen")
	if got := keys(s); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("got %q", got)
	}
	if e := count(s, "d"); e.Partial || e.Count != 1 || s.Len() != 3 {
		t.Errorf("a free entry was not used: %+v of %d", e, s.Len())
	}
	if e := count(s, "e"); e.Count != 2 || s.Len() != 3 {
		t.Errorf("the entry after it is %+v of %d", e, s.Len())
	}
}
