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

// Take takes a token, or takes nothing and returns false. It decides the requests of one key.
// Instants are in nanoseconds since 1970, and never step back. It is not safe for concurrent use.
type Take func(now uint64) bool

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

// fixedWindow counts the grants since the window began. All keys have the same windows.
func fixedWindow(burst, size uint64) Take {
	var window, granted uint64 // window is its number
	return func(now uint64) bool {
		if w := now / size; w != window {
			window, granted = w, 0
		}
		if granted == burst {
			return false
		}
		granted++
		return true
	}
}

// slidingLog has the instant of each grant of the last window. It is exact: no window of that
// length, wherever it begins, has more than the burst.
func slidingLog(burst, window uint64) Take {
	var grants []uint64 // in the order of time
	return func(now uint64) bool {
		for len(grants) > 0 && grants[0]+window <= now {
			grants = grants[1:]
		}
		if uint64(len(grants)) == burst {
			return false
		}
		grants = append(grants, now)
		return true
	}
}

// slidingWindow counts the grants of the present window and of the window before. It estimates the
// grants of the last window-length of time: it assumes that the ones of the window before were
// spread evenly, and counts the share of them that the length still covers.
func slidingWindow(burst, size uint64) Take {
	var window, previous, present uint64 // window is the number of the present one
	return func(now uint64) bool {
		w, elapsed := now/size, now%size
		if w > window+1 {
			present = 0
		}
		if w > window {
			window, previous, present = w, present, 0
		}
		if present == burst {
			return false
		}
		hi, lo := bits.Mul64(previous, size-elapsed)
		covered, rest := bits.Div64(hi, lo, size)
		room := burst - present - 1
		if covered > room || covered == room && rest > 0 {
			return false
		}
		present++
		return true
	}
}

// gcra is the generic cell rate algorithm (ITU-T I.371). Its only state is the theoretical arrival
// time: a key that has sent evenly at the rate would send its next request then. A request may be
// earlier than that time by the tolerance, less the time for the request itself, which is rounded
// down to a nanosecond. It decides as a token bucket does, which is full at the theoretical arrival
// time.
func gcra(burst, tolerance uint64) Take {
	var arrival uint64
	each := tolerance / burst
	return func(now uint64) bool {
		next := max(arrival, now) + each
		if next > now+tolerance {
			return false
		}
		arrival = next
		return true
	}
}
