package modelcheck

import "fmt"

// Program is a program to explore: the calls of its threads, and functions that check it.
// Each of the functions may be nil.
type Program struct {
	Threads   [][]Call
	Invariant func() error                     // called after every step
	Returned  func(Returned) error             // called when a call has returned
	Final     func(history [][]Returned) error // called when all calls have returned
	Format    func(uint64) string              // formats a value for a trace

	// Recorded returns a digest of everything that Invariant has recorded for Returned.
	Recorded func() uint64
}

// Call is a call that a thread makes. Its result must be comparable.
type Call struct {
	Name fmt.Stringer
	Do   func() any
}

// Returned is a call that has returned.
type Returned struct {
	Call
	Thread int
	Result any
	After  []int  // how many calls of each thread had returned before its first step
	Steps  []Step // its own steps; valid until the thread's next call
	Alone  bool   // no other thread made a step between its first step and its last
}

// Step is a step of a thread.
type Step struct {
	Thread int
	Op     Op
	Result uint64 // of the operation, as the thread sees it

	name          uint64
	before, after uint64
	text          string
}

// Wrote reports whether the step wrote to a variable.
func (s Step) Wrote() bool {
	switch s.Op {
	case Store, Add, MapStore, ComputeEnd:
		return true
	case CompareAndSwap, CompareAndSwapPointer:
		return s.Result == 1
	}
	return false
}

// After returns the value of the variable after a step that may write.
func (s Step) After() uint64 { return s.after }

// Options of an exploration.
type Options struct {
	Preemptions int  // the most in a schedule; unlimited if negative
	NoMerge     bool // visit a state again on every path that leads to it
	NoReduction bool // choose before every step, even if it makes no difference
}

// maxSteps is the most steps of a schedule. A longer one is a failure.
const maxSteps = 1000

// Result is the outcome of an exploration.
type Result struct {
	Schedules int      // followed to their end
	States    int      // different states; 0 with NoMerge
	Steps     int      // steps made, including repeated prefixes
	Failure   *Failure // nil if no schedule fails
}

// choice is a point in a schedule at which a thread is chosen to make the next step.
type choice struct {
	options []uint8
	taken   int
	state   uint64 // digest of the state before the choice
}

type explorer struct {
	Options
	start   func() Program
	stack   []choice
	visited map[uint64]struct{}
	written map[uint64]bool // variables of the set-up that some schedule writes
	restart bool
	result  Result
}

// Explore follows every schedule of the program that start returns, until one fails. It calls
// start for each schedule that it follows. start must return the same program every time.
func Explore(start func() Program, o Options) Result {
	e := &explorer{Options: o, start: start, written: make(map[uint64]bool)}
	e.reset()
	for {
		failure := e.follow(false)
		switch {
		case e.restart:
			e.reset()
			continue
		case failure != nil:
			e.result.Failure = e.replay()
			return e.result
		}
		if !e.backtrack() {
			return e.result
		}
	}
}

func (e *explorer) reset() {
	e.stack = e.stack[:0]
	e.visited = make(map[uint64]struct{})
	e.restart = false
	e.result = Result{}
}

// backtrack takes the next option of the last choice that has one left. It reports whether
// there was such a choice.
func (e *explorer) backtrack() bool {
	for len(e.stack) > 0 {
		last := &e.stack[len(e.stack)-1]
		if last.taken++; last.taken < len(last.options) {
			return true
		}
		e.stack = e.stack[:len(e.stack)-1]
	}
	return false
}

// follow makes the choices on the stack, and then takes the first option of each further
// choice, until the schedule ends or reaches a state that was visited before.
func (e *explorer) follow(tracing bool) *Failure {
	w := newWorld(e, tracing)
	defer w.close()
	for depth := 0; w.failure == "" && !e.restart; depth++ {
		if depth == len(e.stack) {
			if !tracing && !e.visit(w) {
				return nil
			}
			options := e.options(w)
			if len(options) == 0 {
				w.checkEnd()
				e.result.Schedules++
				break
			}
			e.stack = append(e.stack, choice{options, 0, w.digest()})
		}
		if e.stack[depth].state != w.digest() {
			w.fail("the program does not do the same when it is repeated")
			break
		}
		if depth == maxSteps {
			w.fail("a call does not return: %d steps", depth)
			break
		}
		c := &e.stack[depth]
		w.step(w.threads[c.options[c.taken]])
		e.result.Steps++
	}
	if w.failure == "" {
		return nil
	}
	return &Failure{Message: w.failure, Trace: w.formatTrace()}
}

// visit records the state and reports whether it is new.
func (e *explorer) visit(w *world) bool {
	if e.NoMerge {
		return true
	}
	d := w.digest()
	if _, ok := e.visited[d]; ok {
		return false
	}
	e.visited[d] = struct{}{}
	e.result.States++
	return true
}

// options returns the threads that may make the next step. The thread that made the last
// step comes first.
func (e *explorer) options(w *world) []uint8 {
	var options []uint8
	if w.last != nil && w.last.enabled() {
		options = append(options, uint8(w.last.id))
	}
	for _, t := range w.threads {
		if t == w.last || !t.enabled() {
			continue
		}
		if e.Preemptions < 0 || !w.preempts(t) || w.switches < e.Preemptions {
			options = append(options, uint8(t.id))
		}
	}
	return options
}

// checkEnd checks a schedule at its end.
func (w *world) checkEnd() {
	history := make([][]Returned, len(w.threads))
	for i, t := range w.threads {
		if !t.done {
			w.fail("deadlock: thread %d waits forever in %s", i, t.calls[len(t.returned)].Name)
			return
		}
		history[i] = t.returned
	}
	if f := w.program.Final; f != nil {
		w.check(func() error { return f(history) })
	}
}

// check calls a function of the program, which fails if it returns an error or panics.
func (w *world) check(f func() error) {
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v", r)
		}
	}()
	if err := f(); err != nil {
		w.fail("%v", err)
	}
}

// replay follows the schedule on the stack once more and records its trace.
func (e *explorer) replay() *Failure {
	result := e.result
	defer func() { e.result = result }()
	return e.follow(true)
}
