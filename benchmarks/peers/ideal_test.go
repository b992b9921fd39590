package peers

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// ideal is the continuous bucket of the contract. C1 forbids a limiter to grant more, and
// C2 forbids it to refuse more.
type ideal struct {
	limit  tb.Limit
	tokens float64
	latest time.Duration // reading
}

// quantum is the smallest fraction of a token in the contract.
const quantum = 1e-6

func newIdeal(limit tb.Limit) *ideal {
	return &ideal{limit: limit, tokens: float64(limit.Capacity)}
}

func (i *ideal) refill(reading time.Duration) {
	if reading > i.latest {
		i.tokens += float64(reading-i.latest) / float64(i.limit.Per) * float64(i.limit.Tokens)
		i.tokens = min(i.tokens, float64(i.limit.Capacity))
		i.latest = reading
	}
}

// take takes n tokens and returns how many the bucket lacked.
func (i *ideal) take(reading time.Duration, n int) (lacked float64) {
	i.refill(reading)
	i.tokens -= float64(n)
	return -i.tokens
}
