package lru

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// An insert that moves keys is stopped half-way. Look-ups and replacements do not notice.
func TestHitsDoNotWaitForAMove(t *testing.T) {
	const keys = 5000
	for _, divide := range []bool{false, true} {
		c := newCache[int](1<<20, false)
		for k := range keys {
			c.use(k)
		}
		tbl := &c.table
		old := tbl.spans[0]
		g := &move[item]{from: tbl.slots[0].Load(), middle: len(tbl.slots) / 2}
		g.to = [2]*smallMap[item]{newSmallMap[item](mostBuckets), newSmallMap[item](mostBuckets)}
		if !divide {
			g.to[1] = g.to[0]
		}
		tbl.moving.Store(g)
		moved := 0
		g.from.Range(func(at uint64, v *item) bool {
			g.target(tbl.slot(at)).Store(at, v)
			if moved%3 > 0 { // one in three is stored, and not removed yet
				g.from.Delete(at)
			}
			moved++
			return moved < keys/2
		})
		c.mu.Lock() // the insert has it
		for range 2 {
			for k := range keys {
				before := c.Load(k)
				if before == nil {
					t.Fatalf("key %d is not found", k)
				}
				if !c.replace(k) || c.Load(k) == before {
					t.Fatalf("key %d is not replaced", k)
				}
			}
		}
		c.mu.Unlock()

		values := make([]*item, keys)
		for k := range values {
			values[k] = c.Load(k)
		}
		tbl.moveKeys(g) // goes on
		if divide {
			low := &span{from: 0, to: g.middle, buckets: mostBuckets, keys: g.to[0].Size()}
			high := &span{from: g.middle, to: old.to, buckets: mostBuckets, keys: g.to[1].Size()}
			tbl.maps++
			tbl.finish(g, low, high)
		} else {
			tbl.finish(g, &span{from: 0, to: old.to, buckets: mostBuckets, keys: keys})
		}
		if err := c.whole(); err != nil {
			t.Fatal(err)
		}
		for k, want := range values {
			if v := c.Load(k); v != want {
				t.Fatalf("key %d has another value than before", k)
			}
		}
	}
}

// While keys come and go, and small maps with them, those that are used stay and are found
// at every instant; and of two callers that replace a value one succeeds.
func TestKeysAreFoundWhileOthersComeAndGo(t *testing.T) {
	const pinned, always = 500, 1 << 40
	churn := 300_000
	if testing.Short() {
		churn = 40_000
	}
	c := newCache[int](50_000, false)
	for k := range pinned {
		c.Insert(k, 0, 0, with(always))
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	var replaced, lost atomic.Int64
	for g := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 9))
			for !done.Load() {
				k := rng.IntN(pinned)
				v := c.Load(k)
				if v == nil {
					t.Errorf("key %d is not found", k)
					return
				}
				if rng.IntN(4) == 0 {
					v.final.Store(true)
					if c.Replace(k, v, with(always)) != nil {
						if v.dead.Swap(true) {
							t.Errorf("key %d: a value was replaced twice", k)
						}
						replaced.Add(1)
					} else {
						lost.Add(1)
					}
				}
			}
		})
	}
	for i := range churn {
		c.Insert(pinned+i, uint64(i), 0, with(uint64(i)))
		if i%1000 == 999 { // all go, and the maps shrink
			for range 60 {
				c.Insert(-i, uint64(i), uint64(i), with(uint64(i)))
				c.Remove(-i, func(*item) {})
			}
		}
	}
	for lost.Load() < 10 && !t.Failed() { // until they have collided
		c.Insert(-churn-1, 0, 0, with(0))
		c.Remove(-churn-1, func(*item) {})
	}
	done.Store(true)
	wg.Wait()
	if err := c.whole(); err != nil {
		t.Error(err)
	}
	t.Logf("%d replaced, %d times another was first", replaced.Load(), lost.Load())
}
