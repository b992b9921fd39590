package fuzz

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

var (
	programs = flag.Int("programs", 2_500, "how many random programs to compare")
	from     = flag.Int("from", 0, "the number of the first random program")
	step     = flag.Int("step", 1, "from the number of a random program to the next one")
)

// eachProgram calls f for n random programs, each with a source of its own. The source depends only
// on the test and on the number of the program, so a program that fails can be run again by itself.
func eachProgram(t *testing.T, n int, f func(*rand.ChaCha8)) {
	for i := *from; i < *from+max(n, 1)**step; i += *step {
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("to run it again: go test ./fuzz -run '^%s$' -programs 1 -from %d", t.Name(), i)
				}
			}()
			f(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, t.Name(), i))))
		}()
	}
}

// tally logs how many decisions n random programs have made, and how many of them the ideal bucket
// makes otherwise. scripts/decisions reads it.
func tally(t *testing.T, n, decisions, off int) {
	t.Helper()
	t.Logf("%d programs: %d decisions, %d differ from the ideal bucket's", max(n, 1), decisions, off)
}

// randomInput returns random bytes.
func randomInput(rng *rand.ChaCha8, size int) input {
	in := make(input, size)
	_, _ = rng.Read(in)
	return in
}

// Processes that take turns run the programs of a range, each of them once.
func TestStepsShareARange(t *testing.T) {
	defer func(f, s int) { *from, *step = f, s }(*from, *step)
	runs := func(first, every, n int, seen map[uint64]int) {
		*from, *step = first, every
		eachProgram(t, n, func(rng *rand.ChaCha8) { seen[rng.Uint64()]++ })
	}
	all, parts := make(map[uint64]int), make(map[uint64]int)
	runs(7, 1, 12, all)
	for i := range 3 {
		runs(7+i, 3, 4, parts)
	}
	if len(all) != 12 || !maps.Equal(all, parts) {
		t.Errorf("%d programs in turns, want the same %d as in one range", len(parts), len(all))
	}
}
