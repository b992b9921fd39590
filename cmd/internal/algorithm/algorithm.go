// Package algorithm has rate limiters that a token bucket is compared with: fixed window, sliding
// log, sliding window counter, and GCRA, which nginx has. They are reference code, in integers and
// without rounding. docs/algorithms.md describes them and says when to prefer which.
//
// # One limit for all
//
// All algorithms have the limit of a token bucket. Its burst is the count of a window, and the
// length of a window is the time in which the rate supplies the burst:
//
//	count  = burst
//	window = burst / rate
//
// This is the only window that grants the same number of requests at once and, for ever, the same
// number a second. In GCRA the burst is the tolerance, as the time in which the rate supplies it.
//
// # Time and units
//
// An instant is a number of nanoseconds since 1970. A cost is in units, which are millionths of a
// token. The window is rounded up to a nanosecond. Fixed windows begin at its multiples.
package algorithm

import (
	"fmt"
	"strings"
	"time"
)

// Take takes a cost in units, at least 1, or takes nothing and returns false. It decides the
// requests of one key. Instants never step back. It is not safe for concurrent use.
type Take func(now, cost uint64) bool

// Names has the name of each algorithm, in the order in which documents list them.
var Names = []string{"fixed-window", "sliding-log", "sliding-window", "gcra"}

var algorithms = map[string]func(*Limit) Take{
	"fixed-window": fixedWindow, "sliding-log": slidingLog, "sliding-window": slidingWindow,
	"gcra": gcra,
}

// New returns the algorithm of that name for a new key.
func New(name string, l *Limit) (Take, error) {
	newTake, ok := algorithms[name]
	if !ok {
		return nil, fmt.Errorf("%q: want one of %s", name, strings.Join(Names, ", "))
	}
	return newTake(l), nil
}

// Bound returns the most tokens that the algorithm of that name grants a key in any interval of d,
// from 0 to the window. A token bucket has the bound of GCRA.
func Bound(name string, l *Limit, d time.Duration) float64 {
	burst := float64(l.limit.Capacity)
	switch name {
	case "fixed-window":
		return 2 * burst
	case "sliding-log":
		return burst
	}
	return burst + burst*d.Seconds()/l.Window().Seconds()
}
