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
