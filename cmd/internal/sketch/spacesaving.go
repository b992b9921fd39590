// Package sketch sums up many keys in bounded memory: a Summary finds the heaviest of them, and a
// Sample keeps some of all.
package sketch

import (
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
	// Count is the weight of the key and Inherited. The caller may only add to it.
	Count float64
	// Inherited is the part of Count that came from the replaced key: the most weight that
	// was missed before the key was tracked.
	Inherited float64
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
		s.least = append(s.least, e)
		s.least.up(len(s.least) - 1)
		return e
	}
	e := s.lowest()
	delete(s.byKey, e.Key)
	e.Key, e.Inherited, e.Partial, e.rankSeen = key, e.Count, true, s.clock
	s.byKey[key] = e
	s.least.down(0)
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
		s.least.down(0)
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
		e.Inherited *= factor
		e.rank, e.rankSeen = e.Count, e.seen
	}
	for i := len(s.least)/2 - 1; i >= 0; i-- {
		s.least.down(i)
	}
}

// Remove stops tracking a key. It takes time proportional to the number of tracked keys.
func (s *Summary[V]) Remove(key string) {
	e := s.byKey[key]
	if e == nil {
		return
	}
	delete(s.byKey, key)
	s.least.remove(slices.Index(s.least, e))
}

// entries is a heap with the lowest rank first, among equal ranks the longest unseen. It has its
// own loops, because each line of a log is counted, and container/heap calls methods of an
// interface.
type entries[V any] []*Entry[V]

func (e *Entry[V]) before(other *Entry[V]) bool {
	return e.rank < other.rank || e.rank == other.rank && e.rankSeen < other.rankSeen
}

// up moves the entry at an index up to its place.
func (h entries[V]) up(i int) {
	e := h[i]
	for parent := (i - 1) / 2; i > 0 && e.before(h[parent]); parent = (i - 1) / 2 {
		h[i], i = h[parent], parent
	}
	h[i] = e
}

// down moves the entry at an index down to its place.
func (h entries[V]) down(i int) {
	e := h[i]
	for child := 2*i + 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(e) {
			break
		}
		h[i], i = h[child], child
	}
	h[i] = e
}

// remove removes the entry at an index.
func (h *entries[V]) remove(i int) {
	last := len(*h) - 1
	(*h)[i], (*h)[last] = (*h)[last], nil
	if *h = (*h)[:last]; i < last {
		h.down(i)
		h.up(i)
	}
}
