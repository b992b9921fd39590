package lru

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzLRU runs a schedule on a table, on the exact map, and on golang-lru where that has the same
// order. The bytes of a schedule are:
//
//   - the bound
//   - the policy. Bit 0: refuse new keys. Bit 1: stamps lie ahead of now, like the stamps of
//     buckets. The other bits: the age at which a value is idle.
//   - two bytes for each step: the step and how far its stamp lies ahead, and the key.
func FuzzLRU(f *testing.F) {
	f.Fuzz(func(t *testing.T, schedule []byte) { runSchedule(t, schedule) })
}

// The steps of a schedule. The step use is a look-up, and an insert if the key is not found.
const (
	use = iota
	touch
	insert
	replace
	full
	wait
	steps
)

const maxBound = 40

// runSchedule runs a schedule and returns what it reached.
func runSchedule(t *testing.T, schedule []byte) stats {
	if len(schedule) < 2 {
		return stats{}
	}
	bound, policy := 1+int(schedule[0])%maxBound, schedule[1]
	refuse, ahead, age := policy&1 > 0, policy&2 > 0, uint64(policy/4)
	c := newComparison(t, bound, refuse, age, policy == 0)
	next := 2
	defer func() {
		if t.Failed() {
			t.Logf("schedule %q", schedule[:next+2])
		}
	}()
	for ; next+1 < len(schedule); next += 2 {
		step, key := schedule[next]%steps, int(schedule[next+1])
		c.now++
		stamp := c.now
		if ahead {
			stamp += uint64(schedule[next] / steps)
		}
		switch {
		case step == wait:
			c.now += uint64(key)
		case step == replace:
			c.replace(key)
		case step == full:
			c.full()
		case step == touch, step == use && c.has(key):
			c.touch(key, stamp)
		default:
			c.insert(key, stamp)
		}
		c.compare()
	}
	return c.stats
}

func TestSameKeysAsExactLRU(t *testing.T) {
	mixes := [][]byte{
		{use},
		{use, touch, insert, replace, full, wait},
		{insert, insert, touch, full, wait},
	}
	schedules := 400
	if testing.Short() {
		schedules = 200
	}
	var sum stats
	for seed := range schedules {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		bound := 1 + rng.IntN(maxBound)
		policies := []byte{0, 0, 1, 2, 3, 40, 255, byte(rng.Uint32())}
		schedule := []byte{byte(bound - 1), policies[rng.IntN(len(policies))]}
		mix := mixes[rng.IntN(len(mixes))]
		keys := bound + 1 // few misses leave many stamps stale
		if seed%2 == 0 {
			keys += rng.IntN(bound)
		}
		for range 400 {
			step := mix[rng.IntN(len(mix))]
			ahead := byte(rng.IntN(math.MaxUint8 / steps))
			schedule = append(schedule, step+steps*ahead, byte(rng.IntN(keys)))
		}
		sum.add(runSchedule(t, schedule))
	}
	t.Logf("%+v", sum)
	least := min(sum.evicted, sum.dropped, sum.refused, sum.full, sum.corrected, sum.inexact)
	if least < schedules/10 {
		t.Errorf("the schedules reach an outcome %d times, want at least %d", least, schedules/10)
	}
}
