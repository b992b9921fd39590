package fuzz

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

var (
	programs = flag.Int("programs", 5_000, "how many random programs to compare")
	from     = flag.Int("from", 0, "the number of the first random program")
)

// eachProgram calls f for n random programs, each with a source of its own. The source depends only
// on the test and on the number of the program, so a program that fails can be run again by itself.
func eachProgram(t *testing.T, n int, f func(*rand.ChaCha8)) {
	for i := *from; i < *from+max(n, 1); i++ {
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

// randomInput returns random bytes.
func randomInput(rng *rand.ChaCha8, size int) input {
	in := make(input, size)
	_, _ = rng.Read(in)
	return in
}
