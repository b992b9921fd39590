package adapt

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A rate is a whole number of millionths of a token a second, so each limit has the same Per.
const (
	resolution = 1_000_000
	per        = resolution * time.Second
)

const (
	minRate   = 0.001
	maxRate   = float64(time.Second)
	minTarget = time.Microsecond
	maxTarget = time.Hour
)

// Config is the range in which a Controller moves a limit, and its aim.
type Config struct {
	// Capacity is the burst of each bucket, in tokens: 1 to tb.MaxCapacity. The controller never
	// changes it. After a pause a burst reaches the downstream at once, so Capacity should be no
	// more than the downstream can take in half of TargetP99.
	Capacity int

	// Min and Max bound the rate, in tokens a second: 0.001 ≤ Min ≤ Max ≤ 10⁹. The rate is rounded
	// to millionths of a token a second. Min is the rate that clients keep while the downstream
	// fails. Max is a rate that the downstream can take for some seconds.
	Min, Max float64

	// Start is the first rate, Min to Max. 0 means Max.
	Start float64

	// TargetP99 is the latency of the downstream that 99 % of the requests should not exceed:
	// 1 µs to 1 h. It should be at least twice the p99 of a downstream without load.
	TargetP99 time.Duration

	// Now is the clock. It must be safe for concurrent use. nil means the monotonic clock of the
	// process.
	Now func() time.Time
}

// Validate returns a *tb.ConfigError if a field is out of range.
func (c Config) Validate() error {
	switch {
	case !(c.Min >= minRate && c.Min <= maxRate): // NaN fails both
		return &tb.ConfigError{Field: "Min", Value: c.Min, Range: "0.001 to 1e+09 tokens a second"}
	case !(c.Max >= c.Min && c.Max <= maxRate):
		return &tb.ConfigError{Field: "Max", Value: c.Max, Range: "Min to 1e+09 tokens a second"}
	case c.Start != 0 && !(c.Start >= c.Min && c.Start <= c.Max):
		return &tb.ConfigError{Field: "Start", Value: c.Start, Range: "0, or Min to Max"}
	case c.TargetP99 < minTarget || c.TargetP99 > maxTarget:
		return &tb.ConfigError{Field: "TargetP99", Value: c.TargetP99, Range: "1µs to 1h"}
	}
	return c.limit(c.Max).Validate()
}

func (c Config) limit(rate float64) tb.Limit {
	return tb.Limit{
		Capacity: c.Capacity,
		Tokens:   int64(math.Round(rate * resolution)),
		Per:      per,
	}
}
