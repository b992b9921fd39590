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

// Limiter decides the requests of one key. It is not safe for concurrent use.
type Limiter interface {
	// Take takes a cost in units, at least 1, or takes nothing and returns false. Instants never
	// step back.
	Take(now, cost uint64) bool
}

// Names has the name of each algorithm, in the order in which documents list them.
var Names = []string{"fixed-window", "sliding-log", "sliding-window", "gcra"}

// New returns a new key's limiter of that name.
func New(name string, l *Limit) (Limiter, error) {
	switch name {
	case "fixed-window":
		return &fixedWindow{limit: l}, nil
	case "sliding-log":
		return &slidingLog{limit: l}, nil
	case "sliding-window":
		return &slidingWindow{limit: l}, nil
	case "gcra":
		return &gcra{limit: l}, nil
	}
	return nil, fmt.Errorf("%q: want one of %s", name, strings.Join(Names, ", "))
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
