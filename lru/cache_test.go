package lru

import "sync/atomic"

// item is a value whose stamp is the time of its last use.
type item struct {
	used  atomic.Uint64
	dead  atomic.Bool
	final atomic.Bool // the value may have a successor
}

// itemValues implements Values.
type itemValues struct {
	stamps atomic.Int64 // number of calls of Stamp
	live   atomic.Int64 // a test counts it up, and Retire counts it down
}

func (v *itemValues) Stamp(i *item) (stamp, state uint64, final bool) {
	v.stamps.Add(1)
	u := i.used.Load()
	return u, u, i.final.Load()
}

func (v *itemValues) Retire(i *item, _, state, _ uint64) bool {
	if i.used.Load() != state || !i.dead.CompareAndSwap(false, true) {
		return false
	}
	v.live.Add(-1)
	return true
}

// cache is a map that is used as an LRU cache. Its clock ticks with each call of use.
type cache[K comparable] struct {
	Map[K, item]
	items itemValues
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
	i, at := c.Recent(key)
	if i != nil {
		i.used.Store(c.now)
		return true
	}
	c.Insert(key, at, c.now, 0, 0, setStamp(c.now))
	return false
}

// setStamp returns a function that gives a new value the stamp, and withStamp for one that replaces
// another.
func setStamp(stamp uint64) func(*item) uint64 {
	return func(i *item) uint64 {
		i.used.Store(stamp)
		return stamp
	}
}

func withStamp(stamp uint64) func(*item) { return func(i *item) { i.used.Store(stamp) } }

// replace replaces key's value by one of the same stamp, and reports whether it did.
func (c *cache[K]) replace(key K) bool {
	old := c.Load(key)
	old.final.Store(true)
	return c.Replace(key, old, 0, withStamp(old.used.Load())) != nil
}

// verify returns an error if the table, the order and the number of keys do not agree.
func (m *Map[K, V]) verify() error { return m.table.verify(&m.order) }
