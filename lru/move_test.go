package lru

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// An insert is stopped while it moves keys. Look-ups and replacements must succeed meanwhile.
func TestHitsDoNotWaitForAMove(t *testing.T) {
	const keys = 5000
	for _, divide := range []bool{false, true} {
		c := newCache[int](1<<20, false)
		for k := range keys {
			c.use(k)
		}
		tbl := &c.table
		old := tbl.spans[0]
		spans := []*span[item]{newSpan[item](0, old.to, mostBuckets)}
		if divide {
			spans = []*span[item]{
				newSpan[item](0, old.to/2, mostBuckets), newSpan[item](old.to/2, old.to, mostBuckets),
			}
			tbl.maps++
		}
		m, moved := &move[item]{old.small, spans}, 0
		tbl.moving.Store(m)
		m.from.Range(func(hash uint64, v *item) bool {
			next := m.spanOf(tbl.slot(hash))
			next.small.Store(hash, v)
			if moved%3 > 0 { // one in three is in both maps
				m.from.Delete(hash)
				next.keys++
			}
			moved++
			return moved < keys/2
		})
		c.mu.Lock() // the insert holds it
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
		tbl.move(old, spans...) // the insert goes on
		if err := c.verify(); err != nil {
			t.Fatal(err)
		}
		for k, want := range values {
			if v := c.Load(k); v != want {
				t.Fatalf("key %d has another value after the move", k)
			}
		}
	}
}

// Keys come and go, and small maps with them. The pinned keys stay and are found at every instant.
// If two callers replace one value, only one succeeds.
func TestKeysAreFoundWhileOthersComeAndGo(t *testing.T) {
	const pinned, always = 500, 1 << 40
	churn := 300_000
	if testing.Short() {
		churn = 40_000
	}
	c := newCache[int](50_000, false)
	for k := range pinned {
		c.Insert(k, Spot{}, 0, 0, 0, setStamp(always))
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	var replaced, tooLate atomic.Int64
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
					if c.Replace(k, v, 0, withStamp(always)) != nil {
						if v.dead.Swap(true) {
							t.Errorf("key %d: a value was replaced twice", k)
						}
						replaced.Add(1)
					} else {
						tooLate.Add(1)
					}
				}
			}
		})
	}
	for i := range churn {
		c.Insert(pinned+i, Spot{}, uint64(i), 0, 0, setStamp(uint64(i)))
		if i%1000 == 999 { // drops all keys but the pinned ones, so the small maps shrink
			for n := range 60 {
				c.Insert(-100*i-n, Spot{}, uint64(i), uint64(i), 0, setStamp(uint64(i)))
			}
		}
	}
	for k := -1; tooLate.Load() < 10 && !t.Failed(); k-- { // until enough callers have collided
		c.Insert(k, Spot{}, always-1, always-1, 0, setStamp(0))
	}
	done.Store(true)
	wg.Wait()
	if err := c.verify(); err != nil {
		t.Error(err)
	}
	t.Logf("%d values replaced; %d times another caller was first", replaced.Load(), tooLate.Load())
}
