package lru

import "sync/atomic"

// item is a value whose stamp is the time of its last use.
type item struct {
	used atomic.Uint64
	dead atomic.Bool
}

// items are Values that count how often they are asked for a stamp, and down how many
// were retired.
type items struct{ stamps, live atomic.Int64 }

func (v *items) Stamp(i *item) (stamp, state uint64) {
	v.stamps.Add(1)
	u := i.used.Load()
	return u, u
}

func (v *items) Retire(i *item, state, _ uint64) bool {
	if i.used.Load() != state || !i.dead.CompareAndSwap(false, true) {
		return false
	}
	v.live.Add(-1)
	return true
}

// cache is a map used as an LRU cache, with a clock that ticks once a call.
type cache[K comparable] struct {
	Map[K, *item]
	items items
	now   uint64
}

func newCache[K comparable](max int, keep bool, shards int) *cache[K] {
	c := &cache[K]{}
	c.init(max, keep, &c.items, shards)
	return c
}

// use looks key up, adds it if it is not there, and says whether it was.
func (c *cache[K]) use(key K) (hit bool) {
	c.now++
	if i, ok := c.Load(key); ok {
		i.used.Store(c.now)
		return true
	}
	c.Insert(key, c.now, 0, with(key, c.now))
	return false
}

// with returns key and a value with the given stamp.
func with[K comparable](key K, stamp uint64) func() (K, *item) {
	return func() (K, *item) {
		i := new(item)
		i.used.Store(stamp)
		return key, i
	}
}
