package lru

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func TestBoundHoldsAtEveryInstant(t *testing.T) {
	const bound, callers = 64, 8
	c := newCache[int](bound, false)
	var wg sync.WaitGroup
	var clock atomic.Uint64
	for g := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 2))
			for range 5000 {
				now := clock.Add(1)
				k := rng.IntN(4 * bound)
				if v, at := c.Recent(k); v != nil {
					v.used.Store(now)
				} else {
					c.Insert(k, at, now, 0, 0, func(v *item) uint64 {
						if n := c.items.live.Add(1); n > bound {
							t.Errorf("%d values alive, want at most %d", n, bound)
						}
						return setStamp(now)(v)
					})
				}
				if n := c.Len(); n > bound {
					t.Errorf("%d keys, want at most %d", n, bound)
				}
			}
		})
	}
	wg.Wait()
	if err := c.verify(); err != nil {
		t.Error(err)
	}
}
