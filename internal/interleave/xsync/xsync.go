// Package xsync stands in for xsync's concurrent map in code that is explored. The map
// itself is taken to be right: a look-up, and the change at the end of a Compute or a
// Store, are one step each, and look-ups do not wait.
//
// In xsync, a Compute holds the lock of a bucket that several keys may share, here one of
// the key alone. So whatever can happen there can happen here; and as callbacks must not
// lock anything, sharing cannot bring a deadlock that is not found here.
package xsync

import "github.com/seed-181794aa/ratelimit/internal/interleave"

// MapOf stands in for the type of that name.
type MapOf[K comparable, V comparable] struct {
	interleave.Object
	cells map[K]*cell[V]
}

type cell[V comparable] struct {
	interleave.Object
	held    bool
	present bool
	value   V
	name    uint64 // of value; 0 if it is not present
}

// NewMapOf returns an empty map.
func NewMapOf[K comparable, V comparable]() *MapOf[K, V] {
	return &MapOf[K, V]{cells: make(map[K]*cell[V])}
}

// NewMapOfWithHasher returns an empty map. It needs no hash.
func NewMapOfWithHasher[K comparable, V comparable](func(K, uint64) uint64) *MapOf[K, V] {
	return NewMapOf[K, V]()
}

func (m *MapOf[K, V]) cell(key K) *cell[V] {
	c := m.cells[key]
	if c == nil {
		c = new(cell[V])
		c.Adopt(&m.Object, key)
		m.cells[key] = c
	}
	return c
}

func (c *cell[V]) set(op interleave.Op, key any, v V, present bool, result uint64) {
	old := c.name
	c.value, c.present, c.name = v, present, 0
	if present {
		c.name = interleave.Identity(v, key)
	}
	c.Became(old, c.name)
	c.Saw(op, result, old, c.name)
	interleave.Publish()
}

// Load is a step.
func (m *MapOf[K, V]) Load(key K) (V, bool) {
	c := m.cell(key)
	c.Step(interleave.MapLoad, nil)
	c.Saw(interleave.MapLoad, c.name, 0, 0)
	return c.value, c.present
}

// Store is a step.
func (m *MapOf[K, V]) Store(key K, v V) {
	c := m.cell(key)
	c.Step(interleave.MapStore, &c.held)
	c.set(interleave.MapStore, key, v, true, 0)
}

// Compute is two steps, and those of f are in between.
func (m *MapOf[K, V]) Compute(key K, f func(V, bool) (V, bool)) (V, bool) {
	c := m.cell(key)
	c.Step(interleave.ComputeBegin, &c.held)
	c.held = true
	c.Saw(interleave.ComputeBegin, c.name, 0, 0)
	c.Became(c.name, ^c.name)

	interleave.Computing(true)
	v, remove := f(c.value, c.present)
	interleave.Computing(false)
	if remove {
		var zero V
		v = zero
	}
	if present := !remove; present != c.present || v != c.value {
		c.Step(interleave.ComputeEnd, nil)
		c.Became(^c.name, c.name)
		c.held = false
		c.set(interleave.ComputeEnd, key, v, present, 0)
		return v, present
	}
	c.held = false
	c.Became(^c.name, c.name)
	c.Saw(interleave.ComputeEnd, 0, c.name, c.name)
	return v, !remove
}

// Len returns the number of keys. It is no step, and not for the code that is explored.
func (m *MapOf[K, V]) Len() int {
	n := 0
	for _, c := range m.cells {
		if c.present {
			n++
		}
	}
	return n
}
