package lru

import (
	"iter"
	"sync"
	"sync/atomic"
)

// bucketEntries is the number of entries in a bucket, which then is two cache lines.
const bucketEntries = 7

// smallMap maps the hash of a key to its value. Load takes no lock, and writes nothing. Add and
// Compute take the lock of one chain of buckets, for a few instructions.
//
// A small map never grows. If a bucket is full, another one is chained to it, until it is empty.
// Only a caller that has the lock of the Map may add or remove a hash. Compute may replace a value
// without it.
type smallMap[V any] struct {
	roots []bucket[V] // at least two, and a power of two
}

// bucket is a link of a chain. A free entry has a hash of another chain, and no value.
type bucket[V any] struct {
	next    atomic.Pointer[bucket[V]]
	mu      sync.Mutex // of a root: of the chain
	entries [bucketEntries]struct {
		hash  atomic.Uint64
		value atomic.Pointer[V]
	}
}

// newSmallMap returns an empty map with a number of root buckets.
func newSmallMap[V any](buckets int) *smallMap[V] {
	m := &smallMap[V]{make([]bucket[V], buckets)}
	for i := range m.roots {
		m.roots[i].clear(m.free(uint64(i)))
	}
	return m
}

// root returns the root of the chain that a hash belongs to.
func (m *smallMap[V]) root(hash uint64) *bucket[V] {
	return &m.roots[hash&uint64(len(m.roots)-1)]
}

// free returns the hash of free entries in the chain that a hash belongs to.
func (m *smallMap[V]) free(hash uint64) uint64 { return ^hash & uint64(len(m.roots)-1) }

// Load returns the value of a hash, or nil.
//
// A hash that stays in the map stays in its entry, so Load comes to it, also from a bucket that is
// taken out of the chain meanwhile. If the entry has another hash after its value was read, the hash
// has left the map.
func (m *smallMap[V]) Load(hash uint64) *V {
	for b := m.root(hash); b != nil; b = b.next.Load() {
		if i := b.index(hash); i >= 0 {
			v := b.entries[i].value.Load()
			if b.entries[i].hash.Load() != hash {
				return nil
			}
			return v
		}
	}
	return nil
}

// Add adds a hash that is not in the map.
func (m *smallMap[V]) Add(hash uint64, v *V) {
	free, root := m.free(hash), m.root(hash)
	root.mu.Lock()
	b, i := root.find(free)
	if i < 0 {
		next := new(bucket[V])
		next.clear(free)
		b.next.Store(next)
		b, i = next, 0
	}
	b.entries[i].value.Store(v)
	b.entries[i].hash.Store(hash)
	root.mu.Unlock()
}

// Compute calls choose with the value of a hash, or with nil, under the lock of the chain. The
// value that choose returns takes its place. If that is nil, the hash is removed. choose must not
// panic, take locks or use the map, and return nil for nil.
func (m *smallMap[V]) Compute(hash uint64, choose func(v *V) *V) {
	root := m.root(hash)
	root.mu.Lock()
	if b, i := root.find(hash); i < 0 {
		choose(nil)
	} else {
		e := &b.entries[i]
		v := e.value.Load()
		switch next := choose(v); next {
		case v:
		case nil:
			e.hash.Store(m.free(hash))
			e.value.Store(nil)
			root.prune()
		default:
			e.value.Store(next)
		}
	}
	root.mu.Unlock()
}

// All returns an iterator over all entries. No other caller may add or remove one meanwhile. The
// caller may remove the one that was yielded.
func (m *smallMap[V]) All() iter.Seq2[uint64, *V] {
	return func(yield func(uint64, *V) bool) {
		for i := range m.roots {
			for b := &m.roots[i]; b != nil; b = b.next.Load() {
				for i := range b.entries {
					e := &b.entries[i]
					if v := e.value.Load(); v != nil && !yield(e.hash.Load(), v) {
						return
					}
				}
			}
		}
	}
}

// index returns the index of the first entry with a hash, or -1. A loop would take three times the
// instructions.
func (b *bucket[V]) index(hash uint64) int {
	e := &b.entries
	switch hash {
	case e[0].hash.Load():
		return 0
	case e[1].hash.Load():
		return 1
	case e[2].hash.Load():
		return 2
	case e[3].hash.Load():
		return 3
	case e[4].hash.Load():
		return 4
	case e[5].hash.Load():
		return 5
	case e[6].hash.Load():
		return 6
	}
	return -1
}

// find returns the entry of a hash in a chain, or an index of -1 and the last bucket.
func (b *bucket[V]) find(hash uint64) (_ *bucket[V], i int) {
	for {
		i = b.index(hash)
		next := b.next.Load()
		if i >= 0 || next == nil {
			return b, i
		}
		b = next
	}
}

func (b *bucket[V]) clear(free uint64) {
	for i := range b.entries {
		b.entries[i].hash.Store(free)
	}
}

// prune takes the empty buckets that are chained to b out of the chain. They still lead to the
// buckets behind them.
func (b *bucket[V]) prune() {
	for next := b.next.Load(); next != nil; next = b.next.Load() {
		if next.isEmpty() {
			b.next.Store(next.next.Load())
		} else {
			b = next
		}
	}
}

func (b *bucket[V]) isEmpty() bool {
	for i := range b.entries {
		if b.entries[i].value.Load() != nil {
			return false
		}
	}
	return true
}
