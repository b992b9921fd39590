package modelcheck

import (
	"fmt"
	"iter"
	"math/bits"
)

// running is the world whose threads run. One goroutine runs at a time, so it needs no
// protection; and so there can be only one exploration at a time in a process.
var running *world

// world is one execution of a program, from its set-up to its end.
type world struct {
	explorer *explorer
	program  Program
	threads  []*thread
	active   *thread // nil during the set-up and after the last step
	last     *thread // that made the step before
	switches int     // preemptions so far
	outside  int     // steps outside of the threads, since the set-up or the last step
	memory   uint64  // digest of all variables
	named    uint64  // variables of the set-up
	pointers map[any]uint64
	failure  string

	tracing  bool
	trace    []Step
	labels   map[uint64]string
	texts    map[any]string // of keys
	appeared int
}

// thread is a thread of the program: a coroutine.
type thread struct {
	id    uint32
	world *world
	calls []Call
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	// What it waits for.
	held      *bool // that must be false
	done      bool
	unwinding bool

	fresh     bool // the call has not made a step
	computing bool
	published uint32
	made      uint64 // objects in this call
	local     uint64 // digest of what the thread has seen
	past      uint64 // digest of the calls that returned
	steps     []Step // of this call
	returned  []Returned
	after     []int
	alone     bool // no other thread has made a step in this call
}

// newWorld sets the program up and lets each thread run to its first step.
func newWorld(e *explorer, tracing bool) *world {
	w := &world{
		explorer: e, tracing: tracing,
		pointers: make(map[any]uint64), labels: make(map[uint64]string),
		texts: make(map[any]string),
	}
	running = w
	w.program = e.start()
	for i, calls := range w.program.Threads {
		t := &thread{id: uint32(i), world: w, calls: calls, past: uint64(i)}
		t.next, t.stop = iter.Pull(t.run)
		w.threads = append(w.threads, t)
	}
	for _, t := range w.threads {
		w.resume(t)
	}
	return w
}

// close ends what still runs.
func (w *world) close() {
	for _, t := range w.threads {
		w.active = t
		t.stop()
	}
	w.active = nil
	running = nil
}

func (w *world) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

type abandoned struct{}

// run is the thread. It is abandoned when the schedule need not be followed any further.
func (t *thread) run(yield func(struct{}) bool) {
	defer func() {
		if r := recover(); r != nil && r != (abandoned{}) {
			t.world.fail("panic: %v", r)
		}
	}()
	t.yield = yield
	for _, c := range t.calls {
		t.fresh, t.alone = true, true
		t.steps = t.steps[:0]
		result := c.Do()
		if t.fresh {
			t.pause(nil)
		}
		t.end(c, result)
	}
	t.done = true
}

// end notes the result of a call. What the thread saw on the way is forgotten: from now
// on it depends on nothing but its results.
func (t *thread) end(c Call, result any) {
	r := Returned{c, int(t.id), result, t.after, t.steps, t.alone}
	t.returned = append(t.returned, r)
	t.past = mix(t.past, Hash(result))
	for _, n := range t.after {
		t.past = mix(t.past, uint64(n))
	}
	t.local = t.past
	t.made = 0
	if f := t.world.program.Returned; f != nil {
		if err := f(r); err != nil {
			t.world.fail("thread %d, %s returned %+v: %v", t.id, c.Name, result, err)
		}
	}
	if t.world.tracing {
		t.world.trace = append(t.world.trace, Step{Thread: int(t.id), Op: ret,
			text: fmt.Sprintf("%s = %+v", c.Name, result)})
	}
}

// pause lets the scheduler choose who makes the next step.
func (t *thread) pause(held *bool) {
	t.held = held
	if !t.yield(struct{}{}) {
		t.abandon()
	}
}

func (t *thread) abandon() {
	t.unwinding = true
	panic(abandoned{})
}

func (t *thread) enabled() bool { return !t.done && (t.held == nil || !*t.held) }

// step has t make the step that it waits for.
func (w *world) step(t *thread) {
	if w.preempts(t) {
		w.switches++
	}
	w.last = t
	w.outside = 0
	for _, u := range w.threads {
		if u != t {
			u.alone = u.fresh
		}
	}
	if t.fresh {
		t.fresh = false
		t.after = make([]int, len(w.threads))
		for i, u := range w.threads {
			t.after[i] = len(u.returned)
			t.local = mix(t.local, uint64(len(u.returned)))
		}
	}
	w.resume(t)
	if f := w.program.Invariant; f != nil && w.failure == "" {
		if err := f(); err != nil {
			w.fail("%v", err)
		}
	}
}

func (w *world) resume(t *thread) {
	w.active = t
	t.next()
	w.active = nil
}

// preempts says whether a step of t would interrupt another thread's call.
func (w *world) preempts(t *thread) bool {
	return w.last != nil && w.last != t && w.last.enabled() && !w.last.fresh
}

// digest identifies the state: what can still happen, and how it will be judged.
func (w *world) digest() uint64 {
	h := w.memory
	for _, t := range w.threads {
		h = mix(h, t.local)
		h = mix(h, uint64(len(t.returned)))
		if t.alone {
			h++
		}
	}
	if f := w.program.Memory; f != nil {
		h = mix(h, f())
	}
	if w.explorer.Preemptions >= 0 && w.last != nil {
		h = mix(h, uint64(w.switches)<<8|uint64(w.last.id))
	}
	return h
}

// mix is a hash of two words.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	hi ^= lo
	return hi ^ hi>>32
}
