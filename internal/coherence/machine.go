// Package coherence simulates processor cores that share cache lines, to show how algorithms of one
// hot key would scale on machines with more cores than there are to measure on.
//
// The model is a machine with a directory (MESI without its E state). A core that has a copy of a
// line reads it at once. A core that is the only owner writes it at once. Otherwise the line has to
// be transferred, and a line that is transferred to a new owner serves no other core meanwhile:
// requests wait in the order in which they came. Reads of a line that is only read are served side
// by side. Stores and caches have no other limits, so a real machine is slower.
package coherence

import (
	"container/heap"
	"iter"
	"math/rand/v2"
)

// Costs are the times of a machine, in nanoseconds.
type Costs struct {
	Transfer float64 // of a line between two cores
	Hit      float64 // a read of a copy that the core has
	Atomic   float64 // a compare-and-swap or an exchange, beside the transfer
}

// Line is a cache line with one word.
type Line struct {
	value   uint64
	owner   *Core // the core that may write, or nil
	copies  map[*Core]bool
	free    float64 // when the transfer to the present owner ends
	waiting []*Core // for another value
}

// NewLine returns a line that no core has.
func NewLine(value uint64) *Line { return &Line{value: value, copies: map[*Core]bool{}} }

// Core runs a program. Its methods are for the program alone.
type Core struct {
	Index int

	yield   func(op) bool
	next    func() (op, bool)
	stop    func()
	pending op
	at      float64 // when the core goes on
	turn    int     // orders cores that go on at the same time
	result  uint64
	swapped bool
	calls   int
	random  *rand.Rand
}

// op is a step of a program.
type op struct {
	kind     kind
	line     *Line
	old, new uint64
	time     float64
}

type kind int

const (
	work kind = iota
	read
	await    // another value than old
	swap     // if the value is old
	exchange // whatever the value is
)

// ended is the panic that ends a program, which has no end of its own.
type ended struct{}

func (c *Core) do(o op) {
	if !c.yield(o) {
		panic(ended{})
	}
}

// Work takes time and touches no line. The time varies by a quarter either way, or the cores would
// march in step.
func (c *Core) Work(time float64) {
	c.do(op{kind: work, time: time * (0.75 + c.random.Float64()/2)})
}

// Read returns the value of a line.
func (c *Core) Read(l *Line) uint64 {
	c.do(op{kind: read, line: l})
	return c.result
}

// Await returns the value of a line once it is not old. The core spins on its copy.
func (c *Core) Await(l *Line, old uint64) uint64 {
	c.do(op{kind: await, line: l, old: old})
	return c.result
}

// CompareAndSwap stores next if the value is old, and reports whether it was.
func (c *Core) CompareAndSwap(l *Line, old, next uint64) bool {
	c.do(op{kind: swap, line: l, old: old, new: next})
	return c.swapped
}

// Exchange stores next and returns the value before.
func (c *Core) Exchange(l *Line, next uint64) uint64 {
	c.do(op{kind: exchange, line: l, new: next})
	return c.result
}

// Done counts a call.
func (c *Core) Done() { c.calls++ }

// machine runs cores until a time.
type machine struct {
	costs Costs
	queue queue
	turns int
}

// Run runs a program on each of n cores for a time in nanoseconds, and returns the calls of each
// core. A program is an endless loop. It may keep lines that it shares with the other cores.
func Run(costs Costs, n int, time float64, program func(*Core)) []int {
	m := &machine{costs: costs}
	cores := make([]*Core, n)
	for i := range cores {
		c := &Core{Index: i, random: rand.New(rand.NewPCG(1, uint64(i)))}
		c.next, c.stop = iter.Pull(func(yield func(op) bool) {
			defer func() {
				if v := recover(); v != nil && v != (ended{}) {
					panic(v)
				}
			}()
			c.yield = yield
			program(c)
		})
		cores[i] = c
		m.resume(c, 0)
	}
	for m.queue[0].at < time {
		c := heap.Pop(&m.queue).(*Core)
		m.step(c)
	}
	calls := make([]int, n)
	for i, c := range cores {
		calls[i] = c.calls
		c.stop()
	}
	return calls
}

// resume lets a core go on with its next step at a time.
func (m *machine) resume(c *Core, at float64) {
	c.pending, _ = c.next()
	c.turn = m.turns
	m.turns++
	m.schedule(c, at)
}

// schedule lets a core do its pending step at a time.
func (m *machine) schedule(c *Core, at float64) {
	c.at = at
	heap.Push(&m.queue, c)
}

// step does the pending step of a core, or postpones it until the line is free.
func (m *machine) step(c *Core) {
	o, now := c.pending, c.at
	if o.kind == work {
		m.resume(c, now+o.time)
		return
	}
	l := o.line
	writes := o.kind == swap || o.kind == exchange
	has := l.owner == c || !writes && l.copies[c]
	if !has && now < l.free {
		m.schedule(c, l.free)
		return
	}
	end := now
	switch {
	case has:
		end += m.costs.Hit
	default:
		end += m.costs.Transfer
		if writes || l.owner != nil {
			l.free = end
		}
	}
	if writes {
		end += m.costs.Atomic
		if l.free < end {
			l.free = end
		}
		clear(l.copies)
		l.owner = c
	} else if l.owner != c {
		l.owner = nil
	}
	l.copies[c] = true
	c.result = l.value
	switch o.kind {
	case await:
		if l.value == o.old {
			l.waiting = append(l.waiting, c)
			return
		}
	case swap:
		if c.swapped = l.value == o.old; c.swapped {
			m.store(l, o.new, end)
		}
	case exchange:
		m.store(l, o.new, end)
	}
	m.resume(c, end)
}

// store changes the value of a line, and wakes the cores that wait for that.
func (m *machine) store(l *Line, value uint64, at float64) {
	l.value = value
	for _, c := range l.waiting {
		m.schedule(c, at)
	}
	l.waiting = nil
}

// queue is a heap of cores by time and turn.
type queue []*Core

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].turn < q[j].turn
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*Core)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
