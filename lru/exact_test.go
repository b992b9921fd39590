package lru

import (
	"cmp"
	"slices"
)

// exactMap is the reference for Map. It has no order of eviction, and searches all keys.
type exactMap struct {
	max     int
	refuse  bool
	entries []stamped // in the order of their inserts
}

type stamped struct {
	key   int
	stamp uint64
}

// find returns the key with its stamp, or nil.
func (x *exactMap) find(key int) *stamped {
	for i := range x.entries {
		if x.entries[i].key == key {
			return &x.entries[i]
		}
	}
	return nil
}

// least returns the key to evict: the one with the least stamp, first inserted first among
// equals.
func (x *exactMap) least() stamped {
	return slices.MinFunc(x.entries, func(a, b stamped) int { return cmp.Compare(a.stamp, b.stamp) })
}

func (x *exactMap) remove(key int) {
	x.entries = slices.DeleteFunc(x.entries, func(e stamped) bool { return e.key == key })
}

// insert does what Insert does, and also returns the evicted keys.
func (x *exactMap) insert(e stamped, now, idle uint64) (evicted []int, until uint64, o Outcome) {
	if x.find(e.key) != nil {
		return nil, 0, Found
	}
	drop := func() {
		key := x.least().key
		evicted = append(evicted, key)
		x.remove(key)
	}
	for len(evicted) < idleDrops && len(x.entries) > 0 && x.least().stamp <= idle {
		drop()
	}
	if len(x.entries) == x.max {
		if until = x.least().stamp; x.refuse && until > now {
			return evicted, until, Refused
		}
		drop()
	}
	x.entries = append(x.entries, e)
	return evicted, 0, Inserted
}
