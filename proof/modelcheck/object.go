package modelcheck

import (
	"fmt"
	"hash/maphash"
	"unsafe"
)

// Op is the operation of a step.
type Op uint8

// The operations. A Compute is two steps: ComputeBegin takes the lock and looks the key up,
// and ComputeEnd makes the change, if there is one.
const (
	Load Op = iota
	Store
	CompareAndSwap
	Add
	Lock
	Unlock
	TryLock
	MapLoad
	MapStore
	MapRange
	ComputeBegin
	ComputeEnd
	LoadPointer // its result is the name of the pointer
	CompareAndSwapPointer
	ret // the return of a call, in a trace
)

var opNames = [...]string{
	"Load", "Store", "CompareAndSwap", "Add", "Lock", "Unlock", "TryLock",
	"map Load", "map Store", "map Range", "map Compute", "map Compute ends",
	"Load", "CompareAndSwap", "return",
}

func (op Op) String() string { return opNames[op] }

// writes reports whether the operation may change what other threads see.
func (op Op) writes() bool {
	switch op {
	case Load, LoadPointer, MapLoad, MapRange, ret:
		return false
	}
	return true
}

// exclusive reports whether the operation takes or releases a lock, or uses a map.
func (op Op) exclusive() bool { return op >= Lock && op <= ComputeEnd }

// Object is what the explorer knows of a variable. Every type that replaces a variable embeds
// one. It has no pointers, because tb/cas keeps buckets in memory that it declares free of
// pointers.
type Object struct {
	name  uint64 // 0 until the first step
	owner uint32 // the thread that made the variable, plus 1; or setUp; 0 if unknown
	epoch uint32 // how often that thread had published variables by then
}

// setUp is the owner of a variable of the set-up.
const setUp = ^uint32(0)

// Step is called before a step on o. The thread waits for its turn and, if held is not nil,
// until *held is false.
func (o *Object) Step(op Op, held *bool) {
	w := running
	if w == nil {
		return
	}
	t := w.active
	if o.name == 0 {
		w.name(o, t)
		if t != nil && op == Store { // t is making it
			o.owner, o.epoch = t.id+1, t.published
		}
	}
	switch {
	case t == nil:
		if held != nil && *held {
			panic("modelcheck: deadlock of a single thread")
		}
		if w.outside++; w.outside > 100*maxSteps {
			panic("modelcheck: a call does not return")
		}
		return
	case t.unwinding:
		return
	case len(t.steps) >= maxSteps: // even if none of them was a choice
		w.fail("a call does not return: %d steps", len(t.steps))
		t.abandon()
	case t.inCallback && op.exclusive() && op != ComputeEnd:
		w.fail("the callback of a Compute takes a lock or uses a map")
	}
	if w.explorer.NoReduction || w.needsChoice(t, o, op) {
		t.pause(held)
	}
}

// needsChoice reports whether it makes a difference when t makes a step on o.
func (w *world) needsChoice(t *thread, o *Object, op Op) bool {
	switch {
	case op == Unlock:
		// Steps of other threads before it do not need the lock, so they may as well
		// come after it.
		return false
	case op == Lock:
		return true
	case o.owner == t.id+1 && o.epoch == t.published:
		return false // no other thread can reach it yet
	case o.owner != setUp || w.explorer.written[o.name]:
		return true
	case op.writes():
		w.explorer.written[o.name] = true
		w.explorer.restart = true
		return true
	}
	return false // no schedule writes it
}

// Record is called after a step on o. It records the result that the thread sees, and the
// values before and after the step for the trace.
func (o *Object) Record(op Op, result, before, after uint64) {
	t := current()
	if t == nil {
		return
	}
	t.seen = mix(t.seen, mix(o.name+uint64(op), result))
	e := Step{Thread: int(t.id), Op: op, Result: result, before: before, after: after, name: o.name}
	t.steps = append(t.steps, e)
	if t.world.tracing {
		t.world.trace = append(t.world.trace, e)
	}
}

// Changed is called after a step that changed o.
func (o *Object) Changed(before, after uint64) {
	if w := running; w != nil {
		w.memory ^= mix(o.name, before) ^ mix(o.name, after)
	}
}

// Publish is called after a step that may let other threads reach the variables that the
// thread made.
func Publish() {
	if t := current(); t != nil {
		t.published++
	}
}

// Seen returns a digest of all results that the current thread has seen.
func Seen() uint64 {
	if t := current(); t != nil {
		return t.seen
	}
	return 0
}

// InCallback records whether the thread runs the callback of a Compute.
func InCallback(on bool) {
	if t := current(); t != nil {
		t.inCallback = on
	}
}

// Identity returns a name of v, usually a pointer, that does not depend on addresses. key is
// the key of v, for the trace.
func Identity(v, key any) uint64 {
	w := running
	if w == nil {
		return 0
	}
	name, ok := w.pointers[v]
	if !ok {
		var o Object
		w.name(&o, w.active)
		name = o.name
		w.pointers[v] = name
		if w.tracing {
			// The first variable of the struct that v points to has the same label.
			type eface struct{ _, data unsafe.Pointer }
			first := (*Object)((*eface)(unsafe.Pointer(&v)).data).name
			if _, ok := w.labels[first]; !ok {
				w.appeared++
				w.labels[first] = fmt.Sprintf("%s#%d", w.text(key), w.appeared)
			}
			w.labels[name] = w.labels[first]
		}
	}
	return name
}

// Created names o, which has just been made.
func (o *Object) Created(what string) {
	w := running
	if w == nil {
		return
	}
	t := w.active
	w.name(o, t)
	if t != nil {
		o.owner, o.epoch = t.id+1, t.published
	}
	if w.tracing {
		w.appeared++
		w.labels[o.name] = fmt.Sprintf("%s#%d", what, w.appeared)
	}
}

// CreatedIn names o as the part of whole that has the given key. The two were made at the
// same time.
func (o *Object) CreatedIn(whole *Object, key any) {
	w := running
	if w == nil {
		return
	}
	o.name = mix(whole.name, Hash(key))
	o.owner, o.epoch = whole.owner, whole.epoch
	if w.tracing {
		w.labels[o.name] = fmt.Sprintf("%s[%s]", w.labels[whole.name], w.text(key))
	}
}

// LabelText returns the label of o in traces.
func (o *Object) LabelText() string {
	if w := running; w != nil {
		return w.label(o.name)
	}
	return ""
}

// LabelKey appends text to the label of a key in traces.
func LabelKey(key any, text string) {
	if w := running; w != nil {
		w.texts[key] += text
	}
}

func (w *world) text(key any) string {
	if s, ok := w.texts[key]; ok {
		return s
	}
	return fmt.Sprint(key)
}

// Label sets the label of o in traces.
func (o *Object) Label(text string) {
	if w := running; w != nil {
		if o.name == 0 {
			w.name(o, nil)
		}
		w.labels[o.name] = text
	}
}

// name names o after the results that t, its maker, has seen by now. So o has the same name
// in two schedules only if its immutable parts are equal too.
func (w *world) name(o *Object, t *thread) {
	if t == nil {
		w.named++
		o.name = mix(w.named, 1)
		o.owner = setUp
		return
	}
	t.made++
	o.name = mix(mix(t.seen, t.made), uint64(t.id)+2)
}

// Thread returns the index of the thread that runs, or -1 during the set-up and at the end.
func Thread() int {
	if t := current(); t != nil {
		return int(t.id)
	}
	return -1
}

func current() *thread {
	if w := running; w != nil && w.active != nil && !w.active.unwinding {
		return w.active
	}
	return nil
}

var seed = maphash.MakeSeed()

// Hash returns a hash of v, which is the same for the whole life of the process.
func Hash(v any) uint64 { return maphash.Comparable(seed, v) }
