// Package algorithm has rate limiters that a token bucket is compared with. docs/what-it-is-not.md
// describes them and says when to prefer which.
//
// All algorithms have the limit of a token bucket. Its burst is the count of a window, and the
// length of a window is the time in which the rate supplies the burst, rounded up to a nanosecond.
// In GCRA that time is the tolerance. Fixed windows begin at the multiples of their length since
// 1970.
package algorithm

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Take takes a cost in tokens, or takes nothing and returns false. It decides the requests of one
// key. Instants are in nanoseconds since 1970, and never step back. It is not safe for concurrent
// use.
type Take func(now, cost uint64) bool

// New has, by name, what returns the algorithm for a new key with a burst and a window.
var New = map[string]func(burst, window uint64) Take{
	"fixed-window": fixedWindow, "sliding-log": slidingLog, "sliding-window": slidingWindow,
	"gcra": gcra,
}

// Names has the name of each algorithm, in the order in which documents list them.
var Names = []string{"fixed-window", "sliding-log", "sliding-window", "gcra"}

// Window returns the length of a window for a valid limit. It returns an error if the rate needs
// more than 146 years to supply the burst: the sum of an instant and two windows is below 2⁶⁴ ns.
func Window(l tb.Limit) (time.Duration, error) {
	hi, lo := bits.Mul64(uint64(l.Capacity), uint64(l.Per))
	lo, carry := bits.Add64(lo, uint64(l.Tokens)-1, 0)
	if hi += carry; hi < uint64(l.Tokens) {
		if window, _ := bits.Div64(hi, lo, uint64(l.Tokens)); window < 1<<62 {
			return time.Duration(window), nil
		}
	}
	return 0, fmt.Errorf("a window of %d tokens at %d every %v: want at most 146 years",
		l.Capacity, l.Tokens, l.Per)
}
