package redis

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// randomLimit returns a limit of any size, often at an edge of the scripts.
func randomLimit(rng *rand.Rand) tb.Limit {
	l := tb.Limit{
		Capacity: int(magnitude(rng, tb.MaxCapacity)),
		Per:      time.Duration(magnitude(rng, math.MaxInt64)),
	}
	switch rng.IntN(5) {
	case 0: // round numbers
		l.Capacity = 1 + rng.IntN(1000)
		l.Per = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[rng.IntN(4)]
	case 1: // the divisor is near the edge of a double, or of the script
		edge := []int64{1 << 26, 1 << rateBits}[rng.IntN(2)]
		l.Per = time.Duration(1000 * (edge - 5 + rng.Int64N(10)))
	case 2: // both numbers of the rate are near the edge of the script
		l.Capacity = unit.Least + rng.IntN(tb.MaxCapacity-unit.Least)
		l.Per = time.Duration(1000 * (1<<rateBits - magnitude(rng, 1<<40)))
		l.Tokens = 1<<rateBits - int64(magnitude(rng, 1<<47))
		return l
	case 3: // the product of capacity and divisor is near 2⁵³
		scale, _ := unit.Scale(l.Capacity)
		units := int64(l.Capacity) * int64(scale)
		l.Per = time.Duration(1000 * max(1, (1<<53)/(units+2)-5+rng.Int64N(10)))
	}
	l.Tokens = int64(magnitude(rng, uint64(l.Per)))
	return l
}

// magnitude returns a number from 1 to most. All its lengths in bits are as likely.
func magnitude(rng *rand.Rand, most uint64) uint64 {
	return 1 + (rng.Uint64()>>rng.IntN(64))%most
}

func randomInstant(rng *rand.Rand) uint64 {
	switch rng.IntN(4) {
	case 0:
		return rng.Uint64N(3_000_000)
	case 1:
		return lastInstant - magnitude(rng, lastInstant)
	}
	return 1_700_000_000_000_000 + rng.Uint64N(1<<50)
}

// nextInstant returns the time of a step: where the last refusal or the level changes, or a random
// one, at most back before the latest.
func nextInstant(rng *rand.Rand, now, latest, back uint64, retry, full time.Duration) uint64 {
	at := func(wait time.Duration) uint64 { // the first µs at which the wait is over, or one before
		if wait == tb.Never {
			return now
		}
		return now + (uint64(wait)+999)/1000 - uint64(rng.IntN(2))
	}
	switch rng.IntN(8) {
	case 0:
		now = at(retry)
	case 1:
		now = at(full)
	case 2:
		now = latest - min(latest, rng.Uint64N(back+1))
	case 3:
		now = latest - min(latest, back)
	case 4:
		now += magnitude(rng, 1<<40)
	case 5, 6:
		if full != tb.Never {
			now += rng.Uint64N(uint64(full)/1000/uint64(1+rng.IntN(50)) + 2)
		}
	}
	return max(now, latest-min(latest, back))
}

// randomCost returns a cost, often one that the tokens just pay.
func randomCost(rng *rand.Rand, capacity int, tokens float64) float64 {
	switch rng.IntN(6) {
	case 0:
		return 1
	case 1:
		return float64(magnitude(rng, uint64(capacity)))
	case 2:
		return math.Max(1e-6, tokens)
	case 3:
		return float64(capacity) * math.Max(1e-9, rng.Float64()) / float64(1+rng.IntN(10))
	case 4:
		return float64(capacity + rng.IntN(2))
	}
	return math.Max(1e-6, math.Round(rng.Float64()*float64(capacity)*1000)/1000)
}
