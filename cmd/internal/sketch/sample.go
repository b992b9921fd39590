package sketch

import (
	"maps"
	"math/bits"
)

// Sample keeps the values of a sample of the keys that are put into it: of all keys up to a bound,
// and beyond of one in OneIn of them, between about half of the bound and all of it. A key is in
// the sample from its first value or never, unless a later key drops it.
//
// It is adaptive sampling (M. Wegman; P. Flajolet, "On Adaptive Sampling", 1990): the sample has
// the keys whose hash begins with a number of zero bits, and whenever it outgrows its bound, the
// number grows by one. A Sample is not safe for concurrent use.
type Sample[K comparable, V any] struct {
	// Values has the values by key. A caller may set the value of a key that is there.
	Values map[K]V

	bound, zeros int
	hash         func(K) uint64
}

// NewSample returns an empty Sample of at most bound keys, with a hash whose bits are even.
func NewSample[K comparable, V any](bound int, hash func(K) uint64) Sample[K, V] {
	return Sample[K, V]{Values: make(map[K]V), bound: bound, hash: hash}
}

// Takes reports whether the sample takes keys with a hash.
func (s *Sample[K, V]) Takes(hash uint64) bool { return bits.LeadingZeros64(hash) >= s.zeros }

// Put sets the value of a key that the sample takes, which may drop keys, even this one.
func (s *Sample[K, V]) Put(key K, value V) {
	s.Values[key] = value
	for len(s.Values) > s.bound {
		s.zeros++
		maps.DeleteFunc(s.Values, func(key K, _ V) bool { return !s.Takes(s.hash(key)) })
	}
}

// OneIn returns of how many keys one is in the sample: 1 if all are.
func (s *Sample[K, V]) OneIn() uint64 { return 1 << s.zeros }
