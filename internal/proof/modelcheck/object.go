package modelcheck

import (
	"fmt"
	"hash/maphash"
	"unsafe"
)

// Op is what a step does.
type Op uint8

// The steps. A Compute is two of them: it begins with the lock and the look-up, and it
// ends with the change, if it changes anything.
const (
	Load Op = iota
	Store
	Swap
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
	LoadPointer // its result is a name
	SwapPointer // if it is what it was compared with
	ret         // of a call without a step of its own
)

var opNames = [...]string{
	"Load", "Store", "Swap", "CompareAndSwap", "Add", "Lock", "Unlock", "TryLock",
	"map Load", "map Store", "map Range", "map Compute", "map Compute ends",
	"Load", "CompareAndSwap", "return",
}

func (op Op) String() string { return opNames[op] }

// writes says whether the step may change what others see.
func (op Op) writes() bool {
	switch op {
	case Load, LoadPointer, MapLoad, MapRange, ret:
		return false
	}
	return true
}

// exclusive says whether the step needs a lock, the map's own included.
func (op Op) exclusive() bool { return op >= Lock && op <= ComputeEnd }

// Object is what the scheduler knows of a variable: the part of every shim. It has no
// pointers, because tb/cas keeps buckets in memory that it has declared free of them.
type Object struct {
	name  uint64 // 0 until the first step
	owner uint32 // the thread that made it, plus 1; or setUp; 0 if that is not known
	epoch uint32 // how often that thread had published something by then
}

// setUp is the owner of what was there before the threads.
const setUp = ^uint32(0)

// Step comes before a step on o: the thread waits here for its turn, and for a lock, if
// the step needs one, to be free.
func (o *Object) Step(op Op, held *bool) {
	w := running
	if w == nil {
		return
	}
	t := w.active
	if o.name == 0 {
		w.christen(o, t)
		if t != nil && op == Store { // it is being made
			o.owner, o.epoch = t.id+1, t.published
		}
	}
	switch {
	case t == nil:
		if held != nil && *held {
			panic("modelcheck: deadlock of a single thread")
		}
		if w.outside++; w.outside > 100*w.explorer.MaxSteps {
			panic("modelcheck: a call does not return")
		}
		return
	case t.unwinding:
		return
	case len(t.steps) >= w.explorer.MaxSteps: // of which none may have been a choice
		w.fail("a call does not return: %d steps", len(t.steps))
		t.abandon()
	case t.computing && op.exclusive() && op != ComputeEnd:
		w.fail("the callback of a Compute takes a lock or uses a map")
	}
	if w.explorer.Plain || w.matters(t, o, op) {
		t.pause(held)
	}
}

// matters says whether it makes a difference when t makes a step on o.
func (w *world) matters(t *thread, o *Object, op Op) bool {
	switch {
	case op == Unlock:
		// What others do before it does not need the lock: they might as well do it after.
		return false
	case op == Lock:
		return true
	case o.owner == t.id+1 && o.epoch == t.published:
		return false // nobody else can have it yet
	case o.owner != setUp || w.explorer.written[o.name]:
		return true
	case op.writes():
		w.explorer.written[o.name] = true
		w.explorer.restart = true
		return true
	}
	return false // nobody ever writes it
}

// Saw comes after a step on o. What the step told the thread is result, and before and
// after are for the trace.
func (o *Object) Saw(op Op, result, before, after uint64) {
	t := current()
	if t == nil {
		return
	}
	t.local = mix(t.local, mix(o.name+uint64(op), result))
	e := Step{Thread: int(t.id), Op: op, Result: result, before: before, after: after, name: o.name}
	t.steps = append(t.steps, e)
	if t.world.tracing {
		t.world.trace = append(t.world.trace, e)
	}
}

// Became comes after a step that changed o.
func (o *Object) Became(before, after uint64) {
	if w := running; w != nil {
		w.memory ^= mix(o.name, before) ^ mix(o.name, after)
	}
}

// Publish comes after a step that may have let others see what the thread made.
func Publish() {
	if t := current(); t != nil {
		t.published++
	}
}

// Local returns a digest of all that the current thread has seen.
func Local() uint64 {
	if t := current(); t != nil {
		return t.local
	}
	return 0
}

// Computing says that the thread runs the callback of a Compute, or no longer.
func Computing(on bool) {
	if t := current(); t != nil {
		t.computing = on
	}
}

// Identity returns a name for v, a pointer as a rule, that does not depend on addresses.
// key is what v was stored under, for the trace.
func Identity(v, key any) uint64 {
	w := running
	if w == nil {
		return 0
	}
	name, ok := w.pointers[v]
	if !ok {
		var o Object
		w.christen(&o, w.active)
		name = o.name
		w.pointers[v] = name
		if w.tracing {
			// The first variable of what is pointed to has the same label.
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

// Made names o, which is made now.
func (o *Object) Made(what string) {
	w := running
	if w == nil {
		return
	}
	t := w.active
	w.christen(o, t)
	if t != nil {
		o.owner, o.epoch = t.id+1, t.published
	}
	if w.tracing {
		w.appeared++
		w.labels[o.name] = fmt.Sprintf("%s#%d", what, w.appeared)
	}
}

// Adopt names o, which is there since whole was made, as the part of it that is under key.
func (o *Object) Adopt(whole *Object, key any) {
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

// Title returns what o is called in traces.
func (o *Object) Title() string {
	if w := running; w != nil {
		return w.label(o.name)
	}
	return ""
}

// Spell gives a key a text for traces, behind those that it has been given.
func Spell(key any, text string) {
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

// Label names o in traces.
func (o *Object) Label(text string) {
	if w := running; w != nil {
		if o.name == 0 {
			w.christen(o, nil)
		}
		w.labels[o.name] = text
	}
}

// christen names o after what its maker has seen until now. So o has the same name in
// two schedules only if whatever is immutable in it is the same too.
func (w *world) christen(o *Object, t *thread) {
	if t == nil {
		w.named++
		o.name = mix(w.named, 1)
		o.owner = setUp
		return
	}
	t.made++
	o.name = mix(mix(t.local, t.made), uint64(t.id)+2)
}

func current() *thread {
	if w := running; w != nil && w.active != nil && !w.active.unwinding {
		return w.active
	}
	return nil
}

var seed = maphash.MakeSeed()

// Hash returns a hash of v that is the same as long as the process runs.
func Hash(v any) uint64 { return maphash.Comparable(seed, v) }
