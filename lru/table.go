package lru

import (
	"maps"
	"math/bits"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

// The table is a directory of small maps, which are xsync maps. A small map serves one slot of the
// directory, which is a range of hashes, or several. It has a fixed number of root buckets, hash
// buckets of five entries, and chains more to full ones.
const (
	// leastBuckets is the number of root buckets of the first small map.
	leastBuckets = 32

	// mostBuckets is the number of root buckets from which on a small map is divided rather than
	// doubled, as long as it has more than one slot. To move its keys takes 0.6 ms (BenchmarkMove).
	mostBuckets = 2048

	// keysPerSlot is the least part of the bound that a slot of the directory serves. In a full
	// table a bucket then has 2.25 keys; with more, keys that come and go chain more buckets to it.
	keysPerSlot = 9 * mostBuckets / 4

	// maxSlots bounds the directory to a megabyte. Beyond 300 million keys the small maps
	// are larger instead.
	maxSlots = 1 << 16

	// rebuildTurns is the number of times that inserts replace all keys while every small map is
	// rebuilt once. xsync never frees the buckets that it has chained to full ones. With 8 turns
	// they take 8 % more memory on average (DESIGN.md §4).
	rebuildTurns = 8
)

// smallMap maps the hash of a key to its value.
type smallMap[V any] = xsync.MapOf[uint64, *V]

// table is a concurrent map without a bound of its own. Look-ups and replace may be
// called concurrently. The lock of the Map guards the other methods.
//
// A small map never grows by itself. Its keys are moved to other maps instead; see move.
type table[K comparable, V any] struct {
	nodes[K, V]
	slots  []atomic.Pointer[smallMap[V]]
	moving atomic.Pointer[move[V]]

	// collided holds the hashes that belong to two keys: see probe.
	collided atomic.Pointer[map[uint64]bool]

	spans       []*span[V] // by slot
	keys        int
	maps        int
	inserts     int // since the last rebuild
	nextRebuild int // slot of the small map that is rebuilt next
}

// span is a small map with its slots and its size.
type span[V any] struct {
	small    *smallMap[V]
	from, to int // slots
	buckets  int // root buckets
	keys     int
}

// keysFor returns the most keys that a small map with the given number of root buckets gets. Such
// a map would grow by itself from 3.75 keys a bucket on. keysFor(mostBuckets) must be below two
// slots of keys, so that each slot has a map of its own before the table is full.
func keysFor(buckets int) int { return buckets * 17 / 5 }

// bucketsFor returns the number of root buckets for a number of keys, with some to spare.
func bucketsFor(keys int) int {
	buckets := leastBuckets
	for 3*buckets < keys {
		buckets *= 2
	}
	return buckets
}

// crowded reports whether a small map must be replaced by a larger one or by two, and sparse
// whether by a smaller one.
func (s *span[V]) crowded() bool { return s.keys >= keysFor(s.buckets) }
func (s *span[V]) sparse() bool  { return s.buckets > leastBuckets && s.keys < s.buckets/4 }

func newSpan[V any](from, to, buckets int) *span[V] {
	small := xsync.NewMapOfWithHasher[uint64, *V](func(hash, _ uint64) uint64 { return hash },
		xsync.WithPresize(buckets*15/4), xsync.WithGrowOnly())
	return &span[V]{small: small, from: from, to: to, buckets: buckets}
}

func (t *table[K, V]) init(keys int) {
	t.nodes = newNodes[K, V]()
	slots := min(max(keys/keysPerSlot, 1), maxSlots)
	t.slots = make([]atomic.Pointer[smallMap[V]], slots)
	t.spans = make([]*span[V], slots)
	t.maps = 1
	t.assign(newSpan[V](0, slots, leastBuckets))
}

// assign puts the small map of s into the directory.
func (t *table[K, V]) assign(s *span[V]) {
	for i := s.from; i < s.to; i++ {
		t.slots[i].Store(s.small)
		t.spans[i] = s
	}
}

// slot returns the slot of a hash, from its upper bits. A small map uses the lower ones.
func (t *table[K, V]) slot(hash uint64) int {
	i, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(i)
}

// small returns the small map of a hash.
func (t *table[K, V]) small(hash uint64) *smallMap[V] { return t.slots[t.slot(hash)].Load() }

// probe returns the value of key and the hash under which it is stored, or nil and the hash
// under which key can be stored. A second key with the same hash is stored under nextHash of it.
// The hash stays in collided, so that probe finds that key even after the first was removed.
func (t *table[K, V]) probe(hash uint64, key K) (v *V, stored uint64) {
	free := false
	for ; ; hash = nextHash(hash) {
		_, v := t.find(hash)
		switch {
		case v != nil && t.hasKey(v, key):
			return v, hash
		case v == nil && !free:
			stored, free = hash, true
		}
		if v == nil && !t.hasCollided(hash) {
			return nil, stored
		}
	}
}

// nextHash returns the hash for a second key with this hash.
func nextHash(hash uint64) uint64 { return fold(hash^0x9e3779b97f4a7c15, 0xd1b54a32d192ed03) }

func (t *table[K, V]) hasCollided(hash uint64) bool {
	all := t.collided.Load()
	return all != nil && (*all)[hash]
}

// find returns the small map that has the hash and the value stored under it, or nil and nil. It
// does not miss a key that is being moved: see "Small maps" in DESIGN.md §4.
func (t *table[K, V]) find(hash uint64) (*smallMap[V], *V) {
	slot := t.slot(hash)
	for m := t.slots[slot].Load(); ; {
		if v, ok := m.Load(hash); ok {
			return m, v
		}
		if move := t.moving.Load(); move != nil && move.from == m {
			to := move.spanOf(slot)
			if v, ok := to.small.Load(hash); ok {
				return to.small, v
			}
		}
		now := t.slots[slot].Load()
		if now == m {
			return nil, nil
		}
		m = now
	}
}

// store adds v, whose key has the given hash and is not in the table. stored is what probe
// returned for it.
func (t *table[K, V]) store(hash, stored uint64, v *V) {
	for ; hash != stored; hash = nextHash(hash) { // look-ups must go on to the next hash
		all := map[uint64]bool{hash: true}
		if old := t.collided.Load(); old != nil {
			maps.Copy(all, *old)
		}
		t.collided.Store(&all)
	}
	slot := t.slot(stored)
	for t.spans[slot].crowded() {
		t.grow(t.spans[slot])
	}
	t.spans[slot].small.Store(stored, v)
	t.spans[slot].keys++
	t.keys++
	if t.inserts++; t.inserts*t.maps >= rebuildTurns*max(t.keys, 2*leastBuckets*t.maps) {
		s := t.spans[t.nextRebuild%len(t.spans)]
		t.inserts, t.nextRebuild = 0, s.to
		t.rebuild(s, min(bucketsFor(s.keys), s.buckets))
	}
}

// replace replaces old by next if old is still the value of key, which has the given hash, and
// reports whether it did.
func (t *table[K, V]) replace(hash uint64, key K, old, next *V) (replaced bool) {
	_, stored := t.probe(hash, key)
	for found := false; !found; {
		m, v := t.find(stored)
		if v == nil {
			return false
		}
		m.Compute(stored, func(v *V, ok bool) (*V, bool) {
			found = ok // if not, it was moved to another map meanwhile
			if replaced = ok && v == old; replaced {
				return next, false
			}
			return v, !ok
		})
	}
	return replaced
}
