package lru

import "sync/atomic"

// The front has two pairs for each key, but not more than mostPairs. 2,048 pairs take 32 KiB. With
// as many pairs as the table has keys, a look-up that misses would wait for the memory twice.
const (
	leastPairs = 8
	mostPairs  = 2048
)

// front is a small table in front of the map: for some hashes, a value that the map has had under
// them. It is a hint. The value may have been replaced or evicted since.
type front[V any] struct {
	pairs atomic.Pointer[[]pair[V]]
}

// pair is a hash and a value, maybe of two stores at once. So a look-up compares the key too.
type pair[V any] struct {
	hash  atomic.Uint64
	value atomic.Pointer[V]
}

// resize empties the front, and gives it a number of pairs, a power of two.
func (f *front[V]) resize(n int) {
	pairs := make([]pair[V], n)
	f.pairs.Store(&pairs)
}

// fit makes the front large enough for a number of keys.
func (f *front[V]) fit(keys int) {
	if n := len(*f.pairs.Load()); n < min(2*keys, mostPairs) {
		f.resize(2 * n)
	}
}

// of returns the pair that a hash has.
func (f *front[V]) of(hash uint64) *pair[V] {
	pairs := *f.pairs.Load()
	return &pairs[hash&uint64(len(pairs)-1)]
}

// at returns the value of the pair of a hash, or nil if the pair has another hash.
func (f *front[V]) at(hash uint64) *V {
	p := f.of(hash)
	if p.hash.Load() != hash { // without a look at the value, whose memory would be a wait
		return nil
	}
	return p.value.Load()
}

// Spot is what Recent has found out about a key, for Remember and Insert. The zero Spot is one of
// a key that was not looked up.
type Spot struct {
	Hash    uint64
	inserts uint64 // of the map, before a look-up that has found the hash free, or 0
}

// Recent is Load, but first asks the front, so the value may have been replaced or evicted. Recent
// is for callers that see by a value itself that it has ended, and then ask Load. If the value is
// nil, the map has not had the key.
func (m *Map[K, V]) Recent(key K) (v *V, at Spot) {
	if !m.table.isShort(&key) {
		return m.recent(key)
	}
	short := shortTextOf(&key) // recent, with hash and hasKey inlined by hand
	hash := mixWords(short.head, short.tail, short.size,
		m.table.hasher.first, m.table.hasher.second)
	if v = m.front.at(hash); v != nil && short.isAt(textAt(v)) {
		return v, Spot{Hash: hash}
	}
	inserts, small := m.inserts.Load(), m.table.small(hash)
	v, ok := small.Load(hash)
	if ok && short.isAt(textAt(v)) {
		return v, Spot{Hash: hash}
	}
	return m.rest(small, ok, key, Spot{hash, inserts})
}

// recent is Recent for keys of all types.
func (m *Map[K, V]) recent(key K) (v *V, at Spot) {
	hash := m.table.hasher.hash(key)
	if v = m.front.at(hash); v != nil && m.table.hasKey(v, key) {
		return v, Spot{Hash: hash}
	}
	inserts, small := m.inserts.Load(), m.table.small(hash)
	v, ok := small.Load(hash)
	if ok && m.table.hasKey(v, key) {
		return v, Spot{Hash: hash}
	}
	return m.rest(small, ok, key, Spot{hash, inserts})
}

// rest is the rest of Recent. The small map has no value under the hash, or, if other is true, the
// value of another key.
func (m *Map[K, V]) rest(small *smallMap[V], other bool, key K, at Spot) (*V, Spot) {
	t := &m.table
	if !other && t.moving.Load() == nil && t.small(at.Hash) == small && t.collided.Load() == nil {
		return nil, at // without another search
	}
	v, _ := t.probe(at.Hash, key)
	return v, Spot{Hash: at.Hash}
}

// Remember puts a value of a key with the given hash into the front. Load, Insert or Replace has
// returned it: a value that the map has never had must not be in the front. Unless over is true,
// Remember leaves the value of another key.
func (m *Map[K, V]) Remember(hash uint64, v *V, over bool) {
	p := m.front.of(hash)
	switch known := p.hash.Load() == hash; {
	case known && p.value.Load() == v: // no store: other processors read the pair
	case known || over || p.value.Load() == nil:
		p.hash.Store(hash)
		p.value.Store(v)
	}
}

// follow puts next into the place of a value that has ended, if the front has that.
func (f *front[V]) follow(hash uint64, v, next *V) {
	if p := f.of(hash); p.value.Load() == v {
		p.value.CompareAndSwap(v, next)
	}
}
