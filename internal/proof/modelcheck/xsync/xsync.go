// Package xsync stands in for xsync's concurrent map in code that is explored. The map
// itself is taken to be right: a look-up, and the change at the end of a Compute or a
// Store, are one step each, and look-ups do not wait.
//
// In xsync, a Compute holds the lock of a bucket that several keys may share, here one of
// the key alone. So whatever can happen there can happen here; and as callbacks must not
// lock anything, sharing cannot bring a deadlock that is not found here.
//
// Range goes bucket by bucket, and calls back for what it has copied from one, which may
// have been replaced meanwhile. Here the values of a bucket are read in a step each, all of
// them before the first call: so whatever xsync may hand out is handed out, and more, except
// that the order within a bucket is that of the keys. Which keys there are is taken to be
// changed by the caller alone.
package xsync

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
)

// MapOf stands in for the type of that name.
type MapOf[K cmp.Ordered, V comparable] struct {
	modelcheck.Object
	cells   map[K]*cell[V]
	hasher  func(K, uint64) uint64
	buckets uint64 // a power of two
}

type cell[V comparable] struct {
	modelcheck.Object
	held    bool
	present bool
	value   V
	name    uint64 // of value; 0 if it is not present
}

// MapConfig stands in for the type of that name.
type MapConfig struct{ size int }

// WithPresize stands in for the function of that name.
func WithPresize(size int) func(*MapConfig) { return func(c *MapConfig) { c.size = size } }

// WithGrowOnly makes no difference: how large a map is shows only in Range.
func WithGrowOnly() func(*MapConfig) { return func(*MapConfig) {} }

// NewMapOf returns an empty map.
func NewMapOf[K cmp.Ordered, V comparable](options ...func(*MapConfig)) *MapOf[K, V] {
	return NewMapOfWithHasher[K, V](func(K, uint64) uint64 { return 0 }, options...)
}

// NewMapOfWithHasher returns an empty map. It has as many buckets as xsync's would have,
// except that it may have less than 32. The hash says in which of them a key is.
func NewMapOfWithHasher[K cmp.Ordered, V comparable](
	hasher func(K, uint64) uint64, options ...func(*MapConfig),
) *MapOf[K, V] {
	var c MapConfig
	for _, o := range options {
		o(&c)
	}
	buckets := max(1, uint64(float64(c.size)/5/0.75))
	m := &MapOf[K, V]{
		cells:   make(map[K]*cell[V]),
		hasher:  hasher,
		buckets: 1 << bits.Len64(buckets-1),
	}
	m.Made("map")
	return m
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

func (c *cell[V]) set(op modelcheck.Op, key any, v V, present bool, result uint64) {
	old := c.name
	c.value, c.present, c.name = v, present, 0
	if present {
		c.name = modelcheck.Identity(v, key)
	}
	c.Became(old, c.name)
	c.Saw(op, result, old, c.name)
	modelcheck.Publish()
}

// Load is a step.
func (m *MapOf[K, V]) Load(key K) (V, bool) {
	c := m.cell(key)
	c.Step(modelcheck.MapLoad, nil)
	c.Saw(modelcheck.MapLoad, c.name, 0, 0)
	return c.value, c.present
}

// Store is a step.
func (m *MapOf[K, V]) Store(key K, v V) {
	c := m.cell(key)
	c.Step(modelcheck.MapStore, &c.held)
	c.set(modelcheck.MapStore, key, v, true, 0)
}

// Compute is two steps, and those of f are in between.
func (m *MapOf[K, V]) Compute(key K, f func(V, bool) (V, bool)) (V, bool) {
	c := m.cell(key)
	c.Step(modelcheck.ComputeBegin, &c.held)
	c.held = true
	c.Saw(modelcheck.ComputeBegin, c.name, 0, 0)
	c.Became(c.name, ^c.name)

	modelcheck.Computing(true)
	v, remove := f(c.value, c.present)
	modelcheck.Computing(false)
	if remove {
		var zero V
		v = zero
	}
	if present := !remove; present != c.present || v != c.value {
		c.Step(modelcheck.ComputeEnd, nil)
		c.Became(^c.name, c.name)
		c.held = false
		c.set(modelcheck.ComputeEnd, key, v, present, 0)
		return v, present
	}
	c.held = false
	c.Became(^c.name, c.name)
	c.Saw(modelcheck.ComputeEnd, 0, c.name, c.name)
	return v, !remove
}

// Range is a step for each key.
func (m *MapOf[K, V]) Range(f func(K, V) bool) {
	type entry struct {
		key   K
		value V
	}
	keys := m.keys()
	for bucket := range m.buckets {
		var copied []entry
		for _, k := range keys {
			if m.hasher(k, 0)>>7&(m.buckets-1) != bucket {
				continue
			}
			c := m.cell(k)
			c.Step(modelcheck.MapRange, &c.held)
			c.Saw(modelcheck.MapRange, c.name, 0, 0)
			if c.present {
				copied = append(copied, entry{k, c.value})
			}
		}
		for _, e := range copied {
			if !f(e.key, e.value) {
				return
			}
		}
	}
}

func (m *MapOf[K, V]) keys() []K {
	var keys []K
	for k, c := range m.cells {
		if c.present {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// Each calls f for each key and its value. It is no step, and not for the code that is
// explored.
func (m *MapOf[K, V]) Each(f func(K, V)) {
	for _, k := range m.keys() {
		f(k, m.cells[k].value)
	}
}
