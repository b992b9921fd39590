package httplimit

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// Counts of calls on several processors are in several copies, and Stats adds them up.
func TestCountsAreAddedUp(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 100`))
	for range 2 * stripes {
		c := s.begin(request())
		if c.decide() != granted { // the call is not put back, so the next one is another
			t.Fatal("refused")
		}
	}
	if st := s.Stats()[0]; st.Granted != 2*stripes {
		t.Errorf("%+v", st)
	}
	for i := range stripes {
		if n := s.policy.Load().rules[0].counts[i].granted.Load(); n != 2 {
			t.Errorf("copy %d has %d", i, n)
		}
	}
}

func TestTableOfEachKindOfLimiter(t *testing.T) {
	for name, newLimiter := range map[string]func(Rule) (tb.Limiter, error){
		"string": func(r Rule) (tb.Limiter, error) { return cas.New[string](r.Limit) },
		"mutex":  func(r Rule) (tb.Limiter, error) { return mutex.New[string](r.Limit) },
		"none":   func(Rule) (tb.Limiter, error) { return answering{Allowed: true}, nil },
	} {
		s := newSite(t, oneRule(`["header:k"]`, `"rps": 1, "burst": 9`), WithLimiter(newLimiter))
		s.get("K: 1")
		s.get("K: 2")
		want := 2
		if name == "none" {
			want = 0
		}
		if got := s.Stats()[0].Table.Keys; got != want {
			t.Errorf("%s: %d keys, want %d", name, got, want)
		}
	}
}
