package suggest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// programs is how many random logs a test tries.
func programs(n uint64) uint64 {
	if testing.Short() {
		return n / 5
	}
	return n
}

func TestNeedIsTheLeastBurstThatRefusesNothing(t *testing.T) {
	for seed := range programs(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := randomLimit(rnd)
		most := []uint64{1, 3, 100, 5_000, 1_000_000}[rnd.IntN(5)]
		tokens := func() uint64 { return 1 + rnd.Uint64N(most) }
		checkNeeds(t, limit, randomLog(rnd, limit, 200, tokens))
	}
}

// A bucket that lacks a ten-thousandth of a token is not full.
func TestNeedOfABucketThatIsNearlyFull(t *testing.T) {
	for _, short := range []int64{1, 1e5, 1e9} {
		log := slices.Repeat([]request{{"a", 1e18, 1, 0}}, 200)
		log = append(log, slices.Repeat([]request{{"a", 1e18 + 200e9 - short, 1, 0}}, 200)...)
		checkNeeds(t, oneASecond, log)
	}
}

// Capacities of 84, 839, 8,389 tokens and so on are the first ones with coarser units. Deficits
// close to them differ by a unit or less.
func TestNeedWhereUnitsBecomeCoarser(t *testing.T) {
	for seed := range programs(2000) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		limit := tb.Limit{Capacity: 1, Tokens: 1 + rnd.Int64N(2), Per: time.Second}
		capacity := coarser[rnd.IntN(len(coarser))]
		few := func() int64 { return 1e9 + rnd.Int64N(3000*int64(coarseness(capacity))) }
		start := int64(1e18) + rnd.Int64N(1e9)
		log := []request{
			{"b", start, 1, 0},
			{"a", start + few() - 1e9, capacity - rnd.Uint64N(3), 0},
		}
		for range 3 {
			start += few()
			log = append(log, request{"a", start, 1 + rnd.Uint64N(2), 0})
		}
		slices.SortFunc(log, func(a, b request) int { return cmp.Compare(a.time, b.time) })
		checkNeeds(t, limit, log)
	}
}

// FuzzNeed makes a log of the bytes: the rate first, and then the steps in time and the tokens.
func FuzzNeed(f *testing.F) {
	f.Add([]byte{3, 7, 5, 0, 1, 200, 2, 0, 3, 7, 1})
	f.Add([]byte{1, 2, 9, 255, 255, 1, 3, 0, 9, 8, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 || len(data) > 200 {
			return
		}
		per := time.Duration(data[0])*time.Second/7 + time.Duration(data[1])*1_000_003 + 1
		tokens := min(int64(data[2])*int64(data[2])+1, int64(per))
		limit := tb.Limit{Capacity: 1, Tokens: tokens, Per: per}
		log, now := []request(nil), int64(1e18)
		for d := data[3:]; len(d) > 1; d = d[2:] {
			tokens := uint64(d[1]&^1)*uint64(data[1]+1)*uint64(data[1]+1) + 1
			log = append(log, request{string('a' + rune(d[1]&1)), now, tokens, 0})
			now += int64(d[0]) * int64(per) / 32
		}
		checkNeeds(t, limit, log)
	})
}
