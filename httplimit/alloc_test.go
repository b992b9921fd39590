package httplimit

import (
	"net/http"
	"testing"
)

func TestAllocationsAreAtMost10(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	for name, l := range map[string]*Limiter{
		"granted": mustNew(t, sprintf(twoRules, "1e9", "1073741824")),
		"refused": mustNew(t, sprintf(twoRules, "0.000001", "1")),
		"settled": mustNew(t, settledRule),
	} {
		h := l.Middleware(http.HandlerFunc(reportOne))
		r := request("X-Api-Key: 0123456789abcdef0123456789abcdef")
		w := &responder{}
		n := testing.AllocsPerRun(100, func() {
			w.header = make(http.Header)
			h.ServeHTTP(w, r)
		})
		if n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Take allocates nothing for a granted request, and only the Refusal and its texts for another.
func TestAllocationsOfTake(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	r := request("X-Api-Key: 0123456789abcdef0123456789abcdef")
	for _, c := range []struct {
		burst string
		most  float64
	}{{"1073741824", 0}, {"1", 6}} {
		l := mustNew(t, sprintf(twoRules, "1e-6", c.burst))
		if n := testing.AllocsPerRun(100, func() { l.Take(nil, r) }); n > c.most {
			t.Errorf("with a burst of %s: %v allocations, want at most %v", c.burst, n, c.most)
		}
	}
}
