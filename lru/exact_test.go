package lru

import (
	"cmp"
	"slices"
)

// exact is what a table is meant to be, with a search through all keys in
// the place of an order.
type exact struct {
	max     int
	refuse  bool
	entries []stamped // in the order they were inserted in
}

type stamped struct {
	key   int
	stamp uint64
}

// find returns the key with its stamp, or nil.
func (x *exact) find(key int) *stamped {
	for i := range x.entries {
		if x.entries[i].key == key {
			return &x.entries[i]
		}
	}
	return nil
}

// least returns the key to evict: of equal stamps that of the first inserted.
func (x *exact) least() stamped {
	return slices.MinFunc(x.entries, func(a, b stamped) int { return cmp.Compare(a.stamp, b.stamp) })
}

func (x *exact) remove(key int) {
	x.entries = slices.DeleteFunc(x.entries, func(e stamped) bool { return e.key == key })
}

// insert is Insert. It also returns which keys had to go.
func (x *exact) insert(e stamped, now, idle uint64) (gone []int, until uint64, o Outcome) {
	if x.find(e.key) != nil {
		return nil, 0, Found
	}
	drop := func() {
		key := x.least().key
		gone = append(gone, key)
		x.remove(key)
	}
	for len(gone) < idleDrops && len(x.entries) > 0 && x.least().stamp <= idle {
		drop()
	}
	if len(x.entries) == x.max {
		if until = x.least().stamp; x.refuse && until > now {
			return gone, until, Refused
		}
		drop()
	}
	x.entries = append(x.entries, e)
	return gone, 0, Inserted
}
