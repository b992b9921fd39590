// Package algorithm has rate limiters that a token bucket is compared with: fixed window, sliding
// log, sliding window counter, and GCRA, which nginx has. They are reference code, in integers.
// docs/algorithms.md describes them and says when to prefer which.
//
// All algorithms have the limit of a token bucket. Its burst is the count of a window, and the
// length of a window is the time in which the rate supplies the burst, rounded up to a nanosecond.
// This is the only window that grants the same number of requests at once and, for ever, the same
// number a second. In GCRA that time is the tolerance. Fixed windows begin at the multiples of
// their length since 1970.
package algorithm

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Take takes a cost in units, or takes nothing and returns false. It decides the requests of one
// key. Instants are in nanoseconds since 1970, and never step back. It is not safe for concurrent
// use.
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

// unitsPerToken is the resolution of a cost.
const unitsPerToken = 1_000_000

// Limit is the limit of all algorithms.
type Limit struct {
	capacity uint64 // units in a window
	window   uint64 // its length in nanoseconds
}

// maxWindow is 146 years. The sum of an instant and two windows is then below 2⁶⁴.
const maxWindow = 1 << 62

// NewLimit returns a valid limit in units. It returns an error if the rate needs more than 146 years
// to supply the burst.
func NewLimit(l tb.Limit) (*Limit, error) {
	hi, lo := bits.Mul64(uint64(l.Capacity), uint64(l.Per))
	lo, carry := bits.Add64(lo, uint64(l.Tokens)-1, 0)
	window := uint64(maxWindow)
	if hi += carry; hi < uint64(l.Tokens) {
		window, _ = bits.Div64(hi, lo, uint64(l.Tokens))
	}
	if window >= maxWindow {
		return nil, fmt.Errorf("a window of %d tokens at %d every %v: want at most 146 years",
			l.Capacity, l.Tokens, l.Per)
	}
	return &Limit{capacity: uint64(l.Capacity) * unitsPerToken, window: window}, nil
}

// Window returns the length of a window.
func (l *Limit) Window() time.Duration { return time.Duration(l.window) }

// Units returns a positive number of tokens in units, rounded up, or more than the burst if the
// tokens are above it.
func (l *Limit) Units(tokens float64) uint64 {
	units := math.Ceil(tokens * unitsPerToken)
	if (units-1)/unitsPerToken >= tokens { // the product was rounded up: 0.3 is 300,000 units
		units--
	}
	return uint64(min(units, float64(l.capacity+1)))
}
