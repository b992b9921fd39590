package algorithm

import (
	"fmt"
	"strings"
	"time"
)

// Names has the name of each algorithm, in the order in which documents list them.
var Names = []string{
	"token-bucket", "fixed-window", "sliding-log", "sliding-window", "leaky-bucket", "gcra",
}

// Limiter decides requests by key, with the limit of New. It is not safe for concurrent use.
type Limiter interface {
	// Take takes a cost in units, at least 1, of a key at an instant, or takes nothing. The time of a
	// key never steps back: an earlier instant counts as the latest one of the key.
	Take(key string, now, cost uint64) Result
	Stats() Stats
}

// Result is the answer to one request.
type Result struct {
	Granted bool
	// Delay is how long a granted request stays in the queue of a leaky bucket, rounded up to a
	// nanosecond.
	Delay time.Duration
	// Leaves is the instant at which a granted request leaves the limiter, Delay after the time of
	// its key. A token bucket has no time beside the latest grant, so its Leaves may step back.
	Leaves uint64
}

// Stats has the memory of a limiter.
type Stats struct {
	// Keys is the number of keys in the table.
	Keys int
	// Bytes is the size of their states, without the table itself and without the keys.
	Bytes int
	// MostBytes is the size of the largest state of a key so far.
	MostBytes int
	// Forgotten counts the keys that left the full table before their state was as a new key's.
	Forgotten uint64
}

// New returns the limiter of that name for at most maxKeys keys, maxKeys ≥ 1.
func New(name string, l *Limit, maxKeys int) (Limiter, error) {
	switch name {
	case "token-bucket":
		return newTokenBucket(l, maxKeys)
	case "fixed-window":
		return newTable[fixedWindow](l, maxKeys), nil
	case "sliding-log":
		return newTable[slidingLog](l, maxKeys), nil
	case "sliding-window":
		return newTable[slidingWindow](l, maxKeys), nil
	case "leaky-bucket":
		return newTable[leakyBucket](l, maxKeys), nil
	case "gcra":
		return newTable[gcra](l, maxKeys), nil
	}
	return nil, fmt.Errorf("%q: want one of %s", name, strings.Join(Names, ", "))
}

// Bound returns the most tokens that the algorithm of that name grants a key in any interval of d,
// from 0 to the window. A leaky bucket may grant one request more.
func Bound(name string, l *Limit, d time.Duration) float64 {
	burst := float64(l.limit.Capacity)
	supply := burst * d.Seconds() / l.Window().Seconds()
	switch name {
	case "fixed-window":
		return 2 * burst
	case "sliding-log":
		return burst
	case "leaky-bucket":
		return supply
	}
	return burst + supply
}
