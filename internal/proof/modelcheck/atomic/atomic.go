// Package atomic replaces sync/atomic in code that is explored. Every operation is a step.
package atomic

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"

// integer is a variable of 64 bits.
type integer[T int64 | uint64] struct {
	modelcheck.Object
	v T
}

func (x *integer[T]) write(op modelcheck.Op, v T, result uint64) {
	old := x.v
	x.v = v
	x.Changed(uint64(old), uint64(v))
	x.Record(op, result, uint64(old), uint64(v))
}

// Load is a step.
func (x *integer[T]) Load() T {
	x.Step(modelcheck.Load, nil)
	x.Record(modelcheck.Load, uint64(x.v), 0, 0)
	return x.v
}

// Store is a step.
func (x *integer[T]) Store(v T) {
	x.Step(modelcheck.Store, nil)
	x.write(modelcheck.Store, v, 0)
}

// Swap is a step.
func (x *integer[T]) Swap(v T) T {
	x.Step(modelcheck.Swap, nil)
	old := x.v
	x.write(modelcheck.Swap, v, uint64(old))
	return old
}

// Add is a step.
func (x *integer[T]) Add(delta T) T {
	x.Step(modelcheck.Add, nil)
	v := x.v + delta
	x.write(modelcheck.Add, v, uint64(v))
	return v
}

// CompareAndSwap is a step.
func (x *integer[T]) CompareAndSwap(before, after T) bool {
	x.Step(modelcheck.CompareAndSwap, nil)
	if x.v != before {
		x.Record(modelcheck.CompareAndSwap, 0, uint64(x.v), uint64(x.v))
		return false
	}
	x.write(modelcheck.CompareAndSwap, after, 1)
	return true
}

// Uint64 replaces atomic.Uint64.
type Uint64 struct{ integer[uint64] }

// Int64 replaces atomic.Int64.
type Int64 struct{ integer[int64] }

// Pointer replaces atomic.Pointer.
type Pointer[T any] struct {
	modelcheck.Object
	p    *T
	name uint64 // of p; 0 if it is nil
}

func (x *Pointer[T]) write(op modelcheck.Op, p *T, result uint64) {
	old := x.name
	x.p, x.name = p, 0
	if p != nil {
		x.name = modelcheck.Identity(p, x.LabelText())
	}
	x.Changed(old, x.name)
	x.Record(op, result, old, x.name)
	modelcheck.Publish()
}

// Load is a step.
func (x *Pointer[T]) Load() *T {
	x.Step(modelcheck.LoadPointer, nil)
	x.Record(modelcheck.LoadPointer, x.name, 0, 0)
	return x.p
}

// Store is a step.
func (x *Pointer[T]) Store(p *T) {
	x.Step(modelcheck.Store, nil)
	x.write(modelcheck.Store, p, 0)
}

// CompareAndSwap is a step.
func (x *Pointer[T]) CompareAndSwap(before, after *T) bool {
	x.Step(modelcheck.CompareAndSwapPointer, nil)
	if x.p != before {
		x.Record(modelcheck.CompareAndSwapPointer, 0, x.name, x.name)
		return false
	}
	x.write(modelcheck.CompareAndSwapPointer, after, 1)
	return true
}
