package redis

import (
	"flag"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/proof/planted"
)

// plant returns the text of the script with a bug.
func plant(t testing.TB, before, bug string) string {
	t.Helper()
	if n := strings.Count(bucketsText, before); n != 1 {
		t.Fatalf("%q occurs %d times, want 1", before, n)
	}
	return strings.Replace(bucketsText, before, bug, 1)
}

var everything = flag.Bool("all", false, "plant all bugs, and simulate more histories and leases")

// TestPlantedBugsAreFound plants the bugs of the script, which proof/planted lists.
func TestPlantedBugsAreFound(t *testing.T) {
	bugs, err := planted.Bugs("script")
	if err != nil {
		t.Fatal(err)
	}
	s := startSimulator(t, bucketsText)
	programs := 600
	var all []*program
	for seed := uint64(0); len(all) < programs; seed++ {
		if p, ok := newProgram(seed); ok {
			all = append(all, p)
		}
	}
	if err := newSimulator(s.client, bucketsText).find(all); err != nil {
		t.Fatalf("without a bug: %v", err)
	}
	planted.Find(t, planted.Chosen(bugs, *everything), func(t *testing.T, b planted.Bug) string {
		text, err := b.In(bucketsText)
		if err != nil {
			t.Fatal(err)
		}
		s.flush(t)
		if err := newSimulator(s.client, text).find(all); err != nil {
			return err.Error()
		}
		return ""
	})
}

// find returns the first error of the tests on the script.
func (s *simulator) find(programs []*program) error {
	for _, b := range behaviours {
		if err := b.check(s); err != nil {
			return err
		}
	}
	return s.compare(programs, new(tally))
}
