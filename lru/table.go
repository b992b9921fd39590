package lru

import (
	"maps"
	"math/bits"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"
)

const (
	// leastBuckets is how many root buckets of five entries the first small map has.
	leastBuckets = 32

	// mostBuckets is from how many on a small map is divided rather than doubled, as long
	// as it can be. Moving its keys takes 0.6 ms (BenchmarkMove).
	mostBuckets = 2048

	// keysPerSlot is the least share of the bound that a slot of the directory is given, and
	// in large tables about what it has. Then a bucket has 2.25 keys in a table that is full:
	// with more of them, keys that come and go chain more buckets to it.
	keysPerSlot = 9 * mostBuckets / 4

	// maxSlots bounds the directory, to a megabyte. Beyond 300 million keys the small
	// maps are larger.
	maxSlots = 1 << 16

	// rebuildTurns is how often all keys are exchanged until all small maps are made anew,
	// one after the other, so as to let go of the buckets that xsync has chained to them and
	// never frees. On average those are 8 % of the memory then.
	rebuildTurns = 8
)

// small is one of the small maps: from the hash of a key to its value.
type small[V any] = xsync.MapOf[uint64, *V]

// table is an unbounded concurrent map. It is made of small maps, each for a range of
// the slots of a directory that never changes its size. Look-ups and replace take no
// lock; the other methods are for one caller at a time.
//
// Small maps never grow by themselves, because no more keys are stored in one than
// it has room for. Instead its keys are moved to other maps, one after the other; see
// move.
type table[K comparable, V any] struct {
	nodes[K, V]
	hasher hasher[K]
	slots  []atomic.Pointer[small[V]]
	only   atomic.Pointer[small[V]] // the small map of all slots, if there is but one
	moving atomic.Pointer[move[V]]

	// collided has the hashes that two keys had: see probe.
	collided atomic.Pointer[map[uint64]bool]

	sizes   []*size // by slot
	keys    int
	maps    int
	inserts int // since the last rebuild
	rebuilt int // the slot up to which maps were rebuilt
}

// size is what is known of a small map.
type size struct {
	from, to int // its slots
	buckets  int // root buckets
	keys     int
}

// room is how many keys a map of so many root buckets is given. With 3.75 for each bucket
// it would grow by itself; and two slots' worth of keys must be more than it has room for,
// so that they get a map each before the table is full.
func room(buckets int) int { return buckets * 17 / 5 }

// fitting is how many root buckets are right for so many keys, with some to spare.
func fitting(keys int) int {
	buckets := leastBuckets
	for 3*buckets < keys {
		buckets *= 2
	}
	return buckets
}

// crowded and sparse are when a map has to give way to larger ones, or to a smaller one.
func (s *size) crowded() bool { return s.keys >= room(s.buckets) }
func (s *size) sparse() bool  { return s.buckets > leastBuckets && s.keys < s.buckets/4 }

func newSmall[V any](buckets int) *small[V] {
	return xsync.NewMapOfWithHasher[uint64, *V](func(hash, _ uint64) uint64 { return hash },
		xsync.WithPresize(buckets*15/4), xsync.WithGrowOnly())
}

func (t *table[K, V]) init(keys int) {
	t.nodes = newNodes[K, V]()
	t.hasher = newHasher[K]()
	slots := min(max(keys/keysPerSlot, 1), maxSlots)
	t.slots = make([]atomic.Pointer[small[V]], slots)
	t.sizes = make([]*size, slots)
	t.maps = 1
	t.assign(newSmall[V](leastBuckets), &size{from: 0, to: slots, buckets: leastBuckets})
}

// assign puts a small map into the directory.
func (t *table[K, V]) assign(m *small[V], s *size) {
	for i := s.from; i < s.to; i++ {
		t.slots[i].Store(m)
		t.sizes[i] = s
	}
	if s.to-s.from < len(t.slots) {
		m = nil
	}
	t.only.Store(m)
}

// slot returns the index of the slot of a hash. It goes by the upper bits, of which a
// small map uses none.
func (t *table[K, V]) slot(hash uint64) int {
	i, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(i)
}

// load returns the value of key, or nil.
func (t *table[K, V]) load(key K) *V {
	hash := t.hasher.hash(key)
	m := t.only.Load() // so that a small table need not wait for the hash to find its map
	if m == nil {
		m = t.slots[t.slot(hash)].Load()
	}
	if v, ok := m.Load(hash); ok && t.has(v, key) {
		return v
	}
	v, _ := t.probe(hash, key)
	return v
}

// probe returns the value of key and the hash under which it is stored, or nil and the
// hash under which it may be stored.
//
// That two keys have the same hash is as good as impossible, but it must do no harm. The
// second one is stored under the hash behind, and a hash that was occupied is remembered
// for ever, so that what lies behind it is found when it has become free.
func (t *table[K, V]) probe(hash uint64, key K) (v *V, at uint64) {
	free := false
	for ; ; hash = next(hash) {
		_, v := t.find(hash)
		switch {
		case v != nil && t.has(v, key):
			return v, hash
		case v == nil && !free:
			at, free = hash, true
		}
		if v == nil && !t.hasCollided(hash) {
			return nil, at
		}
	}
}

// next returns the hash behind hash: one whose every bit depends on it.
func next(hash uint64) uint64 { return fold(hash^0x9e3779b97f4a7c15, 0xd1b54a32d192ed03) }

func (t *table[K, V]) hasCollided(hash uint64) bool {
	all := t.collided.Load()
	return all != nil && (*all)[hash]
}

// collides remembers that a key is stored behind hash.
func (t *table[K, V]) collides(hash uint64) {
	if t.hasCollided(hash) {
		return
	}
	all := make(map[uint64]bool)
	if old := t.collided.Load(); old != nil {
		maps.Copy(all, *old)
	}
	all[hash] = true
	t.collided.Store(&all)
}

// find returns the value stored under hash and the small map that it is in, or nil.
//
// While the keys of a map are moved, a key is in that map or in the one it is moved to,
// and looking there in this order does not miss it. If the map that was looked in has
// left its slot meanwhile, the search starts over.
func (t *table[K, V]) find(hash uint64) (*small[V], *V) {
	slot := t.slot(hash)
	for m := t.slots[slot].Load(); ; {
		if v, ok := m.Load(hash); ok {
			return m, v
		}
		if g := t.moving.Load(); g != nil && g.from == m {
			to := g.target(slot)
			if v, ok := to.Load(hash); ok {
				return to, v
			}
		}
		now := t.slots[slot].Load()
		if now == m {
			return nil, nil
		}
		m = now
	}
}

// store adds v, whose key has the hash and is not in the table, under at, as probe has it.
func (t *table[K, V]) store(hash, at uint64, v *V) {
	for ; hash != at; hash = next(hash) {
		t.collides(hash)
	}
	slot := t.slot(at)
	for t.sizes[slot].crowded() {
		t.grow(t.sizes[slot])
	}
	t.slots[slot].Load().Store(at, v)
	t.sizes[slot].keys++
	t.keys++
	if t.inserts++; t.inserts*t.maps >= rebuildTurns*max(t.keys, 2*leastBuckets*t.maps) {
		t.inserts = 0
		t.rebuildNext()
	}
}

// remove removes key, which is in the table, if ends agrees, which is called with its
// value, in one critical section of a small map: it must not panic. It returns that
// value, or nil if key was not removed.
func (t *table[K, V]) remove(key K, ends func(*V) bool) (removed *V) {
	at := t.hasher.hash(key)
	if t.collided.Load() != nil {
		_, at = t.probe(at, key)
	}
	slot := t.slot(at)
	t.slots[slot].Load().Compute(at, func(v *V, ok bool) (*V, bool) {
		if ok && ends(v) {
			removed = v
		}
		return v, !ok || removed != nil
	})
	if removed == nil {
		return nil
	}
	t.keys--
	s := t.sizes[slot]
	if s.keys--; s.sparse() {
		t.rebuild(s, fitting(s.keys))
	}
	return removed
}

// replace puts next in the place of old if old still is the value of key, and reports
// whether it did.
func (t *table[K, V]) replace(key K, old, next *V) (replaced bool) {
	_, at := t.probe(t.hasher.hash(key), key)
	for found := false; !found; {
		m, v := t.find(at)
		if v == nil {
			return false
		}
		m.Compute(at, func(v *V, ok bool) (*V, bool) {
			found = ok // or it was moved to another map just now
			if replaced = ok && v == old; replaced {
				return next, false
			}
			return v, !ok
		})
	}
	return replaced
}
