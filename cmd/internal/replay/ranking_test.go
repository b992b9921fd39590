package replay

import (
	"fmt"
	"testing"
)

// The keys with the most requests stay. A key that replaces another one inherits its count. The ones
// that were refused most come first.
func TestRanking(t *testing.T) {
	r := newRanking(3)
	for _, n := range []int{3, 2, 2, 2, 1, 1, 1, 1, 4, 4} { // 4 replaces 3
		r.track(key(n)).Value.add(0, n == 1)
	}
	var got string
	for _, e := range r.top(3) {
		got += fmt.Sprintf("%s: %d of %d, %v; ", e.Key, e.Value.refused, e.Value.requests, e.Inherited)
	}
	if want := "key 2: 3 of 3, 0; key 4: 2 of 2, 1; key 1: 0 of 4, 0; "; got != want {
		t.Errorf("got %s, want %s", got, want)
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
