package modelcheck

import (
	"fmt"
	"iter"
	"math/bits"
)

// running is the world whose threads run. It needs no lock, because one goroutine runs at a
// time. A process can make only one exploration at a time.
var running *world

// world is one execution of a program, from its set-up to its end.
type world struct {
	explorer *explorer
	program  Program
	threads  []*thread
	active   *thread // nil during the set-up and after the last step
	last     *thread // the thread that made the last step
	switches int     // number of preemptions so far
	outside  int     // number of steps outside the threads since the set-up or the last step
	memory   uint64  // digest of all variables
	named    uint64  // number of named variables of the set-up
	pointers map[any]uint64
	failure  string

	tracing  bool
	trace    []Step
	labels   map[uint64]string // by name
	texts    map[any]string    // of keys
	appeared int               // number of labels given since the start
}

// thread is a thread of the program: a coroutine.
type thread struct {
	id    uint32
	world *world
	calls []Call
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	held      *bool // the lock that must be free before the next step; nil if none
	done      bool
	unwinding bool

	// The current call.
	fresh      bool   // it has not made a step
	alone      bool   // no other thread has made a step since its first step
	inCallback bool   // it runs the callback of a Compute
	made       uint64 // number of variables that it has made
	seen       uint64 // digest of the results of its steps and of earlier calls
	steps      []Step
	after      []int // how many calls of each thread had returned before its first step

	// All calls.
	published uint32 // how often the thread has published variables that it made
	results   uint64 // digest of the results of the calls that returned
	returned  []Returned
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
		t := &thread{id: uint32(i), world: w, calls: calls, results: uint64(i)}
		t.next, t.stop = iter.Pull(t.run)
		w.threads = append(w.threads, t)
	}
	for _, t := range w.threads {
		w.resume(t)
	}
	return w
}

// close ends the threads that still run.
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

// run makes the calls of the thread. The thread is abandoned when the schedule need not be
// followed any further.
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

// end records the result of a call and forgets the results of its steps, because from now on
// the thread depends only on the results of its calls.
func (t *thread) end(c Call, result any) {
	r := Returned{c, int(t.id), result, t.after, t.steps, t.alone}
	t.returned = append(t.returned, r)
	t.results = mix(t.results, Hash(result))
	for _, n := range t.after {
		t.results = mix(t.results, uint64(n))
	}
	t.seen = t.results
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

// pause waits until the explorer chooses the thread to make the next step.
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

// step lets t make the step that it waits for.
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
			t.seen = mix(t.seen, uint64(len(u.returned)))
		}
	}
	w.resume(t)
	if f := w.program.Invariant; f != nil && w.failure == "" {
		w.check(f)
	}
}

func (w *world) resume(t *thread) {
	w.active = t
	t.next()
	w.active = nil
}

// preempts reports whether a step of t would interrupt another thread's call.
func (w *world) preempts(t *thread) bool {
	return w.last != nil && w.last != t && w.last.enabled() && !w.last.fresh
}

// digest identifies the state: all that its continuations and their checks depend on.
func (w *world) digest() uint64 {
	h := w.memory
	for _, t := range w.threads {
		h = mix(h, t.seen)
		h = mix(h, uint64(len(t.returned)))
		if t.alone {
			h++
		}
	}
	if f := w.program.Recorded; f != nil {
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
