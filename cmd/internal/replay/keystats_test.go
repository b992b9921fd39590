package replay

import (
	"fmt"
	"testing"
)

// The keys with the most requests stay. A key that replaces another one inherits its count.
func TestRanking(t *testing.T) {
	r := newRanking(3)
	for _, n := range []int{3, 2, 2, 2, 1, 1, 1, 1, 4, 4} { // 4 replaces 3
		r.track(key(n)).Value.add(0, n == 2)
	}
	list := func(count func(*keyStats) uint64) (text string) {
		for _, e := range r.most(2, count) {
			text += fmt.Sprintf("%s: %d, %v; ", e.Key, count(&e.Value), e.Inherited)
		}
		return text
	}
	requests := list(func(s *keyStats) uint64 { return s.requests })
	refused := list(func(s *keyStats) uint64 { return s.refused })
	if requests != "key 1: 4, 0; key 2: 3, 0; " || refused != "key 1: 4, 0; key 4: 2, 1; " {
		t.Errorf("most requests %s, most refused %s", requests, refused)
	}
}

// A key is counted at its first request and at its first refusal.
func TestNewsOfAKey(t *testing.T) {
	e := newRanking(1).track(key(1))
	for i, granted := range []bool{true, true, false, false, true} {
		if i > 0 {
			e.Value.requests++
		}
		if news := e.Value.add(0, granted); news != (i == 0 || i == 2) {
			t.Errorf("request %d: news %v", i, news)
		}
	}
}
