package lru

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/lockstep"
)

func TestOnePlaceIsReservedOnce(t *testing.T) {
	rounds := 50_000
	if testing.Short() {
		rounds = 5000
	}
	m := Map[int, *item]{max: 1}
	var reserved atomic.Int64
	lockstep.Run(rounds, func(int, int) {
		if m.reserve() {
			reserved.Add(1)
		}
	}, func(round int) {
		if n := reserved.Swap(0); n != 1 || m.Len() != 1 {
			t.Errorf("round %d: %d of 1 place reserved, %d counted", round, n, m.Len())
		}
		m.count.Store(0)
	})
}

func TestPlacesAreCountedUnderContention(t *testing.T) {
	for _, bound := range []int{1, 3} {
		c := newCache[int](bound, false, 8)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 3))
				for i := range 3000 {
					k := rng.IntN(20)
					if i%5 == 0 {
						c.Remove(k, func(v *item) {
							v.dead.Store(true)
							c.items.live.Add(-1)
						})
						continue
					}
					c.Insert(k, uint64(i), 0, func() (int, *item) {
						if n := c.items.live.Add(1); n > int64(bound) {
							t.Errorf("%d values at a time, want at most %d", n, bound)
						}
						return with(k, uint64(i))()
					})
				}
			})
		}
		wg.Wait()
		places := 0
		for i := range c.shards {
			places += c.shards[i].order.len()
		}
		if n := c.entries.Size(); n != c.Len() || n != places {
			t.Errorf("%d keys, %d counted, %d in the order", n, c.Len(), places)
		}
	}
}

func TestBoundHoldsAtEveryInstant(t *testing.T) {
	for _, shards := range []int{1, 8} {
		const bound, callers = 64, 8
		c := newCache[int](bound, false, shards)
		var wg sync.WaitGroup
		var clock atomic.Uint64
		for g := range callers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 2))
				for range 5000 {
					now := clock.Add(1)
					k := rng.IntN(4 * bound)
					if v, ok := c.Load(k); ok {
						v.used.Store(now)
					} else {
						c.Insert(k, now, 0, func() (int, *item) {
							if n := c.items.live.Add(1); n > bound {
								t.Errorf("%d values at a time, want at most %d", n, bound)
							}
							return with(k, now)()
						})
					}
					if n := c.Len(); n > bound {
						t.Errorf("%d keys, want at most %d", n, bound)
					}
				}
			})
		}
		wg.Wait()
		places := 0
		for i := range c.shards {
			places += c.shards[i].order.len()
		}
		if n := c.entries.Size(); n != c.Len() || n != places {
			t.Errorf("%d keys, %d counted, %d in the order", n, c.Len(), places)
		}
	}
}
