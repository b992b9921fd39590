package lru

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzLRU makes a schedule of the bytes and runs it on a table, on golang-lru
// where that has the same order, and on the exact table. The first byte is the bound, the
// second the policy (bit 0: refuse; bit 1: stamps that lie ahead, as those of buckets do; the
// rest: the age from which on a value is idle), and then there are two bytes a step: what to
// do and how far the stamp lies ahead, and the key.
func FuzzLRU(f *testing.F) {
	f.Fuzz(func(t *testing.T, schedule []byte) { run(t, schedule) })
}

// The steps of a schedule. use is a look-up, and an insert if it misses.
const (
	use = iota
	touch
	insert
	remove
	replace
	full
	wait
	steps
)

const maxBound = 40

func run(t *testing.T, schedule []byte) stats {
	if len(schedule) < 2 {
		return stats{}
	}
	bound, policy := 1+int(schedule[0])%maxBound, schedule[1]
	refuse, ahead, age := policy&1 > 0, policy&2 > 0, uint64(policy/4)
	d := newDuel(t, bound, refuse, age, policy == 0)
	at := 2
	defer func() {
		if t.Failed() {
			t.Logf("schedule %q", schedule[:at+2])
		}
	}()
	for ; at+1 < len(schedule); at += 2 {
		step, key := schedule[at]%steps, int(schedule[at+1])
		d.now++
		stamp := d.now
		if ahead {
			stamp += uint64(schedule[at] / steps)
		}
		switch {
		case step == wait:
			d.now += uint64(key)
		case step == remove:
			d.remove(key)
		case step == replace:
			d.replace(key)
		case step == full:
			d.full()
		case step == touch, step == use && d.has(key):
			d.touch(key, stamp)
		default:
			d.insert(key, stamp)
		}
		d.agree()
	}
	return d.stats
}

func TestSameKeysAsExactLRU(t *testing.T) {
	mixes := [][]byte{
		{use},
		{use, touch, insert, remove, replace, full, wait},
		{insert, insert, touch, full, wait},
	}
	schedules := 1000
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
		keys := bound + 1 // rare misses leave many stamps stale
		if seed%2 == 0 {
			keys += rng.IntN(bound)
		}
		for range 400 {
			step := mix[rng.IntN(len(mix))]
			ahead := byte(rng.IntN(math.MaxUint8 / steps))
			schedule = append(schedule, step+steps*ahead, byte(rng.IntN(keys)))
		}
		sum.add(run(t, schedule))
	}
	// Schedules that reach only half of what the table does prove little.
	t.Logf("%+v", sum)
	least := min(sum.evicted, sum.dropped, sum.refused, sum.full, sum.corrected, sum.inexact)
	if least < schedules/10 {
		t.Error("the schedules hardly reach one of the outcomes above")
	}
}
