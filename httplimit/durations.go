package httplimit

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/hash"
	"github.com/seed-181794aa/ratelimit/tb"
)

// reset returns the seconds until e's bucket has one more whole token, at least 1.
func (c *call) reset(e *entry) int64 {
	if !e.slow && e.delay == 0 {
		return 1
	}
	return max(1, ceilSeconds(c.level(e).NextToken))
}

// neverRetry is the longest wait of a cost that can never fit. With its jitter it is a day.
const neverRetry = 16 * time.Hour

// neverFits reports whether no wait helps. While a reload changes the limit, the decision may be
// one of the next limit.
func (e *entry) neverFits() bool {
	return e.cost > float64(e.Limit.Capacity) || e.decision.RetryAfter == tb.Never
}

// wait returns (cost − tokens)/rate. It is at most neverRetry if the cost can never fit.
func (c *call) wait(e *entry) time.Duration {
	if !e.neverFits() {
		return e.decision.RetryAfter
	}
	over := max(0, e.cost-float64(e.Limit.Capacity))
	full, rest := c.level(e).Full, supplyTime(e.Limit, over)
	return min(full+min(rest, tb.Never-full), neverRetry)
}

// level returns how full e's bucket is after the decision. It asks the bucket once. If the
// store fails, it returns the longest times that agree with the decision.
func (c *call) level(e *entry) tb.Level {
	if e.level != (tb.Level{}) { // which no bucket has
		return e.level
	}
	var err error
	if e.level, err = e.charge.Level(c.now); err != nil ||
		e.level.NextToken < 0 || e.level.Full < 0 { // which makes no sense
		e.level = tb.Level{Tokens: float64(e.decision.Remaining)}
		if missing := e.Limit.Capacity - e.decision.Remaining; missing > 0 {
			e.level.NextToken = supplyTime(e.Limit, 1)
			e.level.Full = supplyTime(e.Limit, float64(missing))
		}
	}
	return e.level
}

// supplyTime returns how long the rate takes to supply tokens, to the nearest nanosecond, so
// that 0.3/0.1 is 3 s and not a little more. It is tb.Never if no Duration can hold it.
func supplyTime(l tb.Limit, tokens float64) time.Duration {
	ns := math.Round(tokens / float64(l.Tokens) * float64(l.Per))
	if ns >= float64(tb.Never) {
		return tb.Never
	}
	return time.Duration(ns)
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// retryAfter returns base and the jitter of this client: 0 to half of base, rounded up, so that
// clients that were refused together do not come back together, not even after a second. The jitter
// of a client and path is the same in every process.
func (c *call) retryAfter(base int64) int64 {
	var subject string
	for _, claim := range []string{"sub", "user_id", "uid"} {
		if subject = claimText(c.claim(claim)); subject != "" {
			break
		}
	}
	a := c.l.address.Network(c.client()).As16()
	h := hash.Add(hash.Empty, c.policy.shared)
	h = hash.Add(h, subject)
	h = hash.Add(h, a[:])
	h = hash.Add(h, c.r.URL.Path)
	return base + min(offset(hash.Mix(h), base-base/2), math.MaxInt64-base)
}

// offset returns 0 to most, for h uniform in 64 bits: the whole part of h/2⁶⁴·(most+1). Each
// value has 2⁶⁴/(most+1) of the hashes, give or take one.
func offset(h uint64, most int64) int64 {
	hi, _ := bits.Mul64(h, uint64(most)+1)
	return int64(hi)
}
