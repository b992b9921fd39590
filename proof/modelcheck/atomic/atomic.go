// Package atomic replaces sync/atomic in code that is explored. Every operation is a step.
package atomic

import "github.com/seed-181794aa/ratelimit/proof/modelcheck"

// Uint64 replaces atomic.Uint64.
type Uint64 struct {
	modelcheck.Object
	v      uint64
	counts bool
}

// Counts declares that threads only add to x, and do not use the sums. So an addition is not a
// step, and returns 0.
func (x *Uint64) Counts() { x.counts = true }

func (x *Uint64) write(op modelcheck.Op, v uint64, result uint64) {
	old := x.v
	x.v = v
	x.Changed(old, v)
	x.Record(op, result, old, v)
}

// Load is a step.
func (x *Uint64) Load() uint64 {
	if x.counts && modelcheck.Thread() >= 0 {
		panic("a thread loads a count")
	}
	x.Step(modelcheck.Load, nil)
	x.Record(modelcheck.Load, x.v, 0, 0)
	return x.v
}

// Store is a step.
func (x *Uint64) Store(v uint64) {
	x.Step(modelcheck.Store, nil)
	x.write(modelcheck.Store, v, 0)
}

// Add is a step.
func (x *Uint64) Add(delta uint64) uint64 {
	if x.counts {
		x.v += delta
		x.Changed(x.v-delta, x.v)
		return 0
	}
	x.Step(modelcheck.Add, nil)
	v := x.v + delta
	x.write(modelcheck.Add, v, v)
	return v
}

// CompareAndSwap is a step.
func (x *Uint64) CompareAndSwap(before, after uint64) bool {
	x.Step(modelcheck.CompareAndSwap, nil)
	if x.v != before {
		x.Record(modelcheck.CompareAndSwap, 0, x.v, x.v)
		return false
	}
	x.write(modelcheck.CompareAndSwap, after, 1)
	return true
}

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

// Bool replaces atomic.Bool.
type Bool struct{ v Uint64 }

// Created names x, which has just been made.
func (x *Bool) Created(what string) { x.v.Created(what) }

// CompareAndSwap is a step.
func (x *Bool) CompareAndSwap(before, after bool) bool {
	return x.v.CompareAndSwap(number(before), number(after))
}

func number(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
