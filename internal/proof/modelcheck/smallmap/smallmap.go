// Package smallmap replaces the small maps of lru in code that is explored. It assumes that they
// are correct, which is explored by itself: a look-up is one step, the change at the end of a
// Compute or Add is one step, and look-ups do not wait.
//
// In lru, a Compute holds the lock of a chain that several hashes may share. Here each key has its
// own lock, so every interleaving of lru is possible here too. Callbacks must not take locks, so
// sharing a lock adds no deadlock.
package smallmap

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
)

// Map is a map from keys to pointers.
type Map[K cmp.Ordered, V any] struct {
	modelcheck.Object
	entries map[K]*entry[V]
}

type entry[V any] struct {
	modelcheck.Object
	held  bool
	value *V
	name  uint64 // of value; 0 if it is nil
}

// New returns an empty map.
func New[K cmp.Ordered, V any]() *Map[K, V] {
	m := &Map[K, V]{entries: make(map[K]*entry[V])}
	m.Created("map")
	return m
}

func (m *Map[K, V]) entry(key K) *entry[V] {
	e := m.entries[key]
	if e == nil {
		e = new(entry[V])
		e.CreatedIn(&m.Object, key)
		m.entries[key] = e
	}
	return e
}

func (e *entry[V]) set(op modelcheck.Op, key any, v *V, result uint64) {
	old := e.name
	e.value, e.name = v, 0
	if v != nil {
		e.name = modelcheck.Identity(v, key)
	}
	e.Changed(old, e.name)
	e.Record(op, result, old, e.name)
	modelcheck.Publish()
}

// Load is a step.
func (m *Map[K, V]) Load(key K) *V {
	e := m.entry(key)
	e.Step(modelcheck.MapLoad, nil)
	e.Record(modelcheck.MapLoad, e.name, 0, 0)
	return e.value
}

// Add is a step.
func (m *Map[K, V]) Add(key K, v *V) {
	e := m.entry(key)
	e.Step(modelcheck.MapStore, &e.held)
	e.set(modelcheck.MapStore, key, v, 0)
}

// Compute is two steps. The steps of choose come between them.
func (m *Map[K, V]) Compute(key K, choose func(*V) *V) {
	e := m.entry(key)
	e.Step(modelcheck.ComputeBegin, &e.held)
	e.held = true
	e.Record(modelcheck.ComputeBegin, e.name, 0, 0)
	e.Changed(e.name, ^e.name)

	modelcheck.InCallback(true)
	next := choose(e.value)
	modelcheck.InCallback(false)
	if next != e.value {
		e.Step(modelcheck.ComputeEnd, nil)
		e.Changed(^e.name, e.name)
		e.held = false
		e.set(modelcheck.ComputeEnd, key, next, 0)
		return
	}
	e.held = false
	e.Changed(^e.name, e.name)
	e.Record(modelcheck.ComputeEnd, 0, e.name, e.name)
}

// All is a step for each key. It assumes that only its caller adds and removes keys meanwhile.
func (m *Map[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for _, k := range m.keys() {
			e := m.entry(k)
			e.Step(modelcheck.MapRange, nil)
			e.Record(modelcheck.MapRange, e.name, 0, 0)
			if e.value != nil && !yield(k, e.value) {
				return
			}
		}
	}
}

func (m *Map[K, V]) keys() []K {
	keys := slices.Collect(maps.Keys(m.entries))
	slices.Sort(keys)
	return slices.DeleteFunc(keys, func(k K) bool { return m.entries[k].value == nil })
}

// Each calls f for each key and its value. It makes no step: it is for tests, and not for the
// code that is explored.
func (m *Map[K, V]) Each(f func(K, *V)) {
	for _, k := range m.keys() {
		f(k, m.entries[k].value)
	}
}
