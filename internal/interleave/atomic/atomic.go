// Package atomic stands in for sync/atomic in code that is explored.
package atomic

import "github.com/seed-181794aa/ratelimit/internal/interleave"

// integer is a variable of 64 bits.
type integer[T int64 | uint64] struct {
	interleave.Object
	v T
}

func (x *integer[T]) write(op interleave.Op, v T, result uint64) {
	old := x.v
	x.v = v
	x.Became(uint64(old), uint64(v))
	x.Saw(op, result, uint64(old), uint64(v))
}

// Load is a step.
func (x *integer[T]) Load() T {
	x.Step(interleave.Load, nil)
	x.Saw(interleave.Load, uint64(x.v), 0, 0)
	return x.v
}

// Store is a step.
func (x *integer[T]) Store(v T) {
	x.Step(interleave.Store, nil)
	x.write(interleave.Store, v, 0)
}

// Swap is a step.
func (x *integer[T]) Swap(v T) T {
	x.Step(interleave.Swap, nil)
	old := x.v
	x.write(interleave.Swap, v, uint64(old))
	return old
}

// Add is a step.
func (x *integer[T]) Add(delta T) T {
	x.Step(interleave.Add, nil)
	v := x.v + delta
	x.write(interleave.Add, v, uint64(v))
	return v
}

// CompareAndSwap is a step.
func (x *integer[T]) CompareAndSwap(before, after T) bool {
	x.Step(interleave.CompareAndSwap, nil)
	if x.v != before {
		x.Saw(interleave.CompareAndSwap, 0, uint64(x.v), uint64(x.v))
		return false
	}
	x.write(interleave.CompareAndSwap, after, 1)
	return true
}

// Uint64 stands in for the type of that name.
type Uint64 struct{ integer[uint64] }

// Int64 stands in for the type of that name.
type Int64 struct{ integer[int64] }

// Pointer stands in for the type of that name.
type Pointer[T any] struct {
	interleave.Object
	p    *T
	name uint64 // of p; 0 if it is nil
}

func (x *Pointer[T]) write(op interleave.Op, p *T, result uint64) {
	old := x.name
	x.p, x.name = p, 0
	if p != nil {
		x.name = interleave.Identity(p, x.Title())
	}
	x.Became(old, x.name)
	x.Saw(op, result, old, x.name)
	interleave.Publish()
}

// Load is a step.
func (x *Pointer[T]) Load() *T {
	x.Step(interleave.LoadPointer, nil)
	x.Saw(interleave.LoadPointer, x.name, 0, 0)
	return x.p
}

// Store is a step.
func (x *Pointer[T]) Store(p *T) {
	x.Step(interleave.Store, nil)
	x.write(interleave.Store, p, 0)
}

// CompareAndSwap is a step.
func (x *Pointer[T]) CompareAndSwap(before, after *T) bool {
	x.Step(interleave.SwapPointer, nil)
	if x.p != before {
		x.Saw(interleave.SwapPointer, 0, x.name, x.name)
		return false
	}
	x.write(interleave.SwapPointer, after, 1)
	return true
}
