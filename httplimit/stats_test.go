package httplimit

import "testing"

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
