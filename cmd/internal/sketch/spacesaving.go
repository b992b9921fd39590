// Package sketch sums up many keys in bounded memory: a Summary finds the heaviest of them, and a
// Sample keeps some of all.
package sketch

import (
	"container/heap"
	"iter"
	"slices"
)

// Summary is the Space-Saving algorithm (A. Metwally, D. Agrawal, A. El Abbadi, "Efficient
// Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005). It tracks at most bound
// keys. Once it is full, a new key replaces the tracked key with the lowest count, among equal
// counts the one not seen for the longest time. The new key inherits the count, because that much
// of its own may have been missed.
//
// Without Scale and Remove, a key with more than 1/bound of everything counted is always
// tracked, and no entry inherits more than that share.
//
// A Summary is not safe for concurrent use.
type Summary[V any] struct {
	bound int
	clock uint64 // calls of See
	byKey map[string]*Entry[V]
	least entries[V]
}

// Entry is a tracked key.
type Entry[V any] struct {
	Key string
	// Value has the caller's own data. See reports when the caller must set it.
	Value V
	// Count is the weight of the key, and the count of the key that it replaced: the most weight that
	// was missed before it was tracked. The caller may only add to it.
	Count float64
	// Partial reports that the key replaced another one. It may have been seen before.
	Partial bool

	seen uint64 // the clock at the last See of the key

	// rank and rankSeen are Count and seen when the heap last read them. They are
	// corrected only at the top of the heap, so that counting does not touch it.
	rank     float64
	rankSeen uint64
}

// NewSummary returns an empty Summary of at most bound keys.
func NewSummary[V any](bound int) *Summary[V] {
	return &Summary[V]{bound: bound, byKey: make(map[string]*Entry[V], bound)}
}

// See returns the entry of key and tracks the key if it was not tracked. If added is
// true, Value is the zero value or still the value of the replaced key, and the caller must
// set it. A call with a tracked key does not allocate.
func (s *Summary[V]) See(key []byte) (e *Entry[V], added bool) {
	s.clock++
	e = s.byKey[string(key)] // does not allocate
	if e == nil {
		e, added = s.add(string(key)), true
	}
	e.seen = s.clock
	return e, added
}

// Get returns the entry of key, or nil if the key is not tracked.
func (s *Summary[V]) Get(key string) *Entry[V] { return s.byKey[key] }

// add tracks a key in a new entry or, if s is full, in the entry with the lowest count.
func (s *Summary[V]) add(key string) *Entry[V] {
	if len(s.least) < s.bound {
		e := &Entry[V]{Key: key, rankSeen: s.clock}
		s.byKey[key] = e
		heap.Push(&s.least, e)
		return e
	}
	e := s.lowest()
	delete(s.byKey, e.Key)
	e.Key, e.Partial, e.rankSeen = key, true, s.clock
	s.byKey[key] = e
	heap.Fix(&s.least, 0)
	return e
}

// lowest returns the entry with the lowest count, which is then at the top of the heap.
// Counts and times only grow, so a rank is at worst too low. A top entry with a correct
// rank is therefore the lowest. Any other top entry is corrected and moves down.
func (s *Summary[V]) lowest() *Entry[V] {
	for {
		e := s.least[0]
		if e.rank == e.Count && e.rankSeen == e.seen {
			return e
		}
		e.rank, e.rankSeen = e.Count, e.seen
		heap.Fix(&s.least, 0)
	}
}

// All returns the entries in no particular order.
func (s *Summary[V]) All() iter.Seq[*Entry[V]] { return slices.Values(s.least) }

// Len returns the number of tracked keys.
func (s *Summary[V]) Len() int { return len(s.least) }

// Scale multiplies all counts by factor, from 0 to 1, so that older weight counts less.
func (s *Summary[V]) Scale(factor float64) {
	for _, e := range s.least {
		e.Count *= factor
		e.rank, e.rankSeen = e.Count, e.seen
	}
	heap.Init(&s.least)
}

// Remove stops tracking a key. It takes time proportional to the number of tracked keys.
func (s *Summary[V]) Remove(key string) {
	e := s.byKey[key]
	if e == nil {
		return
	}
	delete(s.byKey, key)
	heap.Remove(&s.least, slices.Index(s.least, e))
}

// entries is a heap.Interface with the lowest rank first, among equal ranks the longest unseen.
type entries[V any] []*Entry[V]

func (h entries[V]) Len() int      { return len(h) }
func (h entries[V]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *entries[V]) Push(e any)   { *h = append(*h, e.(*Entry[V])) }

func (h entries[V]) Less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].rankSeen < h[j].rankSeen
}

// Pop removes the last entry.
func (h *entries[V]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
