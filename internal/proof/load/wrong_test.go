package load

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The judge gets the records of wrong limiters, and of a right one, of one key with late
// readings. They are made by one goroutine, so that they are the same in every run.
func TestJudgeReportsWrongLimiters(t *testing.T) {
	const token = 10 * time.Microsecond
	limit := perSecond(1000, int64(time.Second/token))
	for _, tt := range []struct {
		name string
		// refill returns the tokens, in nanoseconds of supply, and the time of a bucket.
		refill          func(tokens, at, now time.Duration) (time.Duration, time.Duration)
		overdrawn, lost bool
	}{
		{"right", func(tokens, at, now time.Duration) (time.Duration, time.Duration) {
			return tokens + max(0, now-at), max(now, at)
		}, false, false},
		{"time moves back", func(tokens, at, now time.Duration) (time.Duration, time.Duration) {
			return tokens + max(0, now-at), now
		}, true, false},
		{"whole tokens only", func(tokens, at, now time.Duration) (time.Duration, time.Duration) {
			return tokens + max(0, now-at)/token*token, max(now, at)
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			var tokens, at time.Duration // the first call takes the capacity
			records := []record{{made: 0, done: 1, n: limit.Capacity, allowed: true}}
			for i := range 10_000 {
				now := time.Duration(i)*time.Microsecond - time.Duration(rng.Int64N(int64(maxLate)))
				r := record{at: max(0, now), n: 1, made: int64(2*i + 2), done: int64(2*i + 3)}
				tokens, at = tt.refill(tokens, at, r.at)
				if r.allowed = tokens >= token; r.allowed {
					tokens -= token
				}
				records = append(records, r)
			}
			a := &judge{limit: limit}
			playBack([]*judge{a}, records)
			t.Logf("%d granted; %d rounds violate C1, and %d refusals C2", a.granted, a.overdrawn, a.lost)
			if (a.overdrawn > 0) != tt.overdrawn || (a.lost > 0) != tt.lost {
				t.Errorf("%d rounds violate C1, and %d refusals C2; %s", a.overdrawn, a.lost, a.first)
			}
		})
	}
}
