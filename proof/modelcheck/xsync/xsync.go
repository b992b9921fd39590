// Package xsync replaces xsync's concurrent map in code that is explored. It assumes that
// xsync's own map is correct: a look-up is one step, the change at the end of a Compute or
// Store is one step, and look-ups do not wait.
//
// In xsync, a Compute holds the lock of a map bucket that several keys may share. Here each
// key has its own lock, so every interleaving of xsync is possible here too. Callbacks must
// not take locks, so sharing a lock adds no deadlock.
//
// In xsync, Range copies the values of one map bucket at a time, and then calls the function
// for each copy. A value may have been replaced by then. Here Range reads each value of a map
// bucket in a step of its own, all of them before the first call. So it can return every
// combination of values that xsync can, and more, but it visits the keys of a map bucket in
// their own order. It assumes that only its caller adds and removes keys while it runs.
package xsync

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
)

// MapOf replaces xsync.MapOf.
type MapOf[K cmp.Ordered, V comparable] struct {
	modelcheck.Object
	entries map[K]*entry[V]
	keys    []K // of entries, sorted
	hasher  func(K, uint64) uint64
	buckets uint64 // a power of two
}

type entry[V comparable] struct {
	modelcheck.Object
	held    bool
	present bool
	value   V
	name    uint64 // of value; 0 if it is not present
}

// MapConfig replaces xsync.MapConfig.
type MapConfig struct{ size int }

// WithPresize replaces xsync.WithPresize.
func WithPresize(size int) func(*MapConfig) { return func(c *MapConfig) { c.size = size } }

// WithGrowOnly replaces xsync.WithGrowOnly. It has no effect, because the size of a map shows
// only in Range.
func WithGrowOnly() func(*MapConfig) { return func(*MapConfig) {} }

// NewMapOfWithHasher returns an empty map. It has as many map buckets as xsync's map, but may
// have fewer than 32. The hash of a key selects its bucket.
func NewMapOfWithHasher[K cmp.Ordered, V comparable](
	hasher func(K, uint64) uint64, options ...func(*MapConfig),
) *MapOf[K, V] {
	var c MapConfig
	for _, o := range options {
		o(&c)
	}
	buckets := max(1, uint64(float64(c.size)/5/0.75))
	m := &MapOf[K, V]{
		entries: make(map[K]*entry[V]),
		hasher:  hasher,
		buckets: 1 << bits.Len64(buckets-1),
	}
	m.Created("map")
	return m
}

func (m *MapOf[K, V]) entry(key K) *entry[V] {
	e := m.entries[key]
	if e == nil {
		e = new(entry[V])
		e.CreatedIn(&m.Object, key)
		m.entries[key] = e
		i, _ := slices.BinarySearch(m.keys, key)
		m.keys = slices.Insert(m.keys, i, key)
	}
	return e
}

func (e *entry[V]) set(op modelcheck.Op, key any, v V, present bool, result uint64) {
	old := e.name
	e.value, e.present, e.name = v, present, 0
	if present {
		e.name = modelcheck.Identity(v, key)
	}
	e.Changed(old, e.name)
	e.Record(op, result, old, e.name)
	modelcheck.Publish()
}

// Load is a step.
func (m *MapOf[K, V]) Load(key K) (V, bool) {
	e := m.entry(key)
	e.Step(modelcheck.MapLoad, nil)
	e.Record(modelcheck.MapLoad, e.name, 0, 0)
	return e.value, e.present
}

// Store is a step.
func (m *MapOf[K, V]) Store(key K, v V) {
	e := m.entry(key)
	e.Step(modelcheck.MapStore, &e.held)
	e.set(modelcheck.MapStore, key, v, true, 0)
}

// Compute is two steps. The steps of f come between them.
func (m *MapOf[K, V]) Compute(key K, f func(V, bool) (V, bool)) (V, bool) {
	e := m.entry(key)
	e.Step(modelcheck.ComputeBegin, &e.held)
	e.held = true
	e.Record(modelcheck.ComputeBegin, e.name, 0, 0)
	e.Changed(e.name, ^e.name)

	modelcheck.InCallback(true)
	v, remove := f(e.value, e.present)
	modelcheck.InCallback(false)
	if remove {
		var zero V
		v = zero
	}
	if present := !remove; present != e.present || v != e.value {
		e.Step(modelcheck.ComputeEnd, nil)
		e.Changed(^e.name, e.name)
		e.held = false
		e.set(modelcheck.ComputeEnd, key, v, present, 0)
		return v, present
	}
	e.held = false
	e.Changed(^e.name, e.name)
	e.Record(modelcheck.ComputeEnd, 0, e.name, e.name)
	return v, !remove
}

// Range is a step for each key.
func (m *MapOf[K, V]) Range(f func(K, V) bool) {
	type pair struct {
		key   K
		value V
	}
	var keys []K
	m.Each(func(k K, _ V) bool {
		keys = append(keys, k)
		return true
	})
	for bucket := range m.buckets {
		var copied []pair
		for _, k := range keys {
			if m.hasher(k, 0)>>7&(m.buckets-1) != bucket {
				continue
			}
			e := m.entry(k)
			e.Step(modelcheck.MapRange, &e.held)
			e.Record(modelcheck.MapRange, e.name, 0, 0)
			if e.present {
				copied = append(copied, pair{k, e.value})
			}
		}
		for _, p := range copied {
			if !f(p.key, p.value) {
				return
			}
		}
	}
}

// Each calls f for each key and its value, until f returns false. It makes no step: it is for
// tests, and not for the code that is explored.
func (m *MapOf[K, V]) Each(f func(K, V) bool) {
	for _, k := range m.keys {
		if e := m.entries[k]; e.present && !f(k, e.value) {
			return
		}
	}
}
