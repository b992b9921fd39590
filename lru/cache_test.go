package lru

import "sync/atomic"

// item is a value whose stamp is the time of its last use.
type item struct {
	used  atomic.Uint64
	dead  atomic.Bool
	final atomic.Bool // it may have a successor
}

// items are Values that count how often they are asked for a stamp, and down how many
// were retired.
type items struct{ stamps, live atomic.Int64 }

func (v *items) Stamp(i *item) (stamp, state uint64, final bool) {
	v.stamps.Add(1)
	u := i.used.Load()
	return u, u, i.final.Load()
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
	Map[K, item]
	items items
	now   uint64
}

func newCache[K comparable](max int, refuse bool) *cache[K] {
	c := &cache[K]{}
	c.Init(max, refuse, &c.items)
	return c
}

// use looks key up, adds it if it is not there, and reports whether it was.
func (c *cache[K]) use(key K) (hit bool) {
	c.now++
	if i := c.Load(key); i != nil {
		i.used.Store(c.now)
		return true
	}
	c.Insert(key, c.now, 0, with(c.now))
	return false
}

// with gives a value the stamp.
func with(stamp uint64) func(*item) { return func(i *item) { i.used.Store(stamp) } }

// replace puts a copy of key's value in its place.
func (c *cache[K]) replace(key K) bool {
	old := c.Load(key)
	old.final.Store(true)
	return c.Replace(key, old, with(old.used.Load())) != nil
}

// whole returns an error if the table, the order and the counts do not agree.
func (m *Map[K, V]) whole() error { return m.table.whole(&m.order) }
