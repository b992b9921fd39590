package modelcheck_test

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/atomic"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/sync"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/xsync"
)

// toy has the variables of a small program: two integers, a lock, a map and a pointer.
type toy struct {
	x, y atomic.Uint64
	mu   sync.Mutex
	m    *xsync.MapOf[string, *atomic.Uint64]
	p    atomic.Pointer[atomic.Uint64]
	z    uint64 // guarded by mu
}

func newToy() *toy {
	hash := func(string, uint64) uint64 { return 0 }
	s := &toy{m: xsync.NewMapOfWithHasher[string, *atomic.Uint64](hash)}
	s.x.Label("x")
	s.y.Label("y")
	s.mu.Label("mu")
	s.p.Label("p")
	return s
}

func do(name string, f func() int) modelcheck.Call {
	return modelcheck.Call{Name: text(name), Do: func() any { return f() }}
}

type text string

func (t text) String() string { return string(t) }

func (s *toy) increment() int {
	v := s.x.Load()
	s.x.Store(v + 1)
	return int(v)
}

func (s *toy) incrementAtomically() int {
	for {
		v := s.x.Load()
		if s.x.CompareAndSwap(v, v+1) {
			return int(v)
		}
	}
}

func (s *toy) incrementUnderLock() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.z++
	return int(s.z)
}

// enter tries to enter the critical section as in Peterson's algorithm, but gives up instead of
// waiting. If broken is true, it reads the flag of the other thread before it sets its own.
func (s *toy) enter(mine, other *atomic.Uint64, broken bool) int {
	in := 0
	if broken {
		in = int(1 - other.Load())
		mine.Store(1)
	} else {
		mine.Store(1)
		in = int(1 - other.Load())
	}
	return in
}

// publish stores a variable in the map, or adds 1 to the variable in the map.
func (s *toy) publish() int {
	if v, ok := s.m.Load("k"); ok {
		return int(v.Add(1))
	}
	v := new(atomic.Uint64)
	v.Store(1)
	s.m.Compute("k", func(old *atomic.Uint64, ok bool) (*atomic.Uint64, bool) {
		if ok {
			old.Add(1)
			return old, false
		}
		return v, false
	})
	return 0
}

// point stores a variable in the pointer if it is nil, and adds 1 to the variable.
func (s *toy) point() int {
	if s.p.Load() == nil {
		v := new(atomic.Uint64)
		v.Store(10)
		s.p.CompareAndSwap(nil, v)
	}
	return int(s.p.Load().Add(1))
}

// threads returns n threads with the given number of calls of f each.
func threads(n, calls int, f func(s *toy, thread int) int) func(s *toy) [][]modelcheck.Call {
	return func(s *toy) [][]modelcheck.Call {
		var p [][]modelcheck.Call
		for t := range n {
			c := do("f", func() int { return f(s, t) })
			p = append(p, slices.Repeat([]modelcheck.Call{c}, calls))
		}
		return p
	}
}

var toys = []struct {
	name      string
	threads   func(s *toy) [][]modelcheck.Call
	schedules int // all, without merging states
	outcomes  int // different sums at the end
}{
	{"two lose an increment", threads(2, 1,
		func(s *toy, _ int) int { return s.increment() }), 6, 2},
	{"three lose increments", threads(3, 1,
		func(s *toy, _ int) int { return s.increment() }), 90, 3},
	{"two by compare-and-swap", threads(2, 1,
		func(s *toy, _ int) int { return s.incrementAtomically() }), 6, 1},
	{"three by compare-and-swap", threads(3, 1,
		func(s *toy, _ int) int { return s.incrementAtomically() }), 498, 1},
	{"two under a lock", threads(2, 1,
		func(s *toy, _ int) int { return s.incrementUnderLock() }), 2, 1},
	{"three twice under a lock", threads(3, 2,
		func(s *toy, _ int) int { return s.incrementUnderLock() }), 90, 1},
	{"two at the map", threads(2, 2, func(s *toy, _ int) int { return s.publish() }), 0, 0},
	{"two at the pointer", threads(2, 2, func(s *toy, _ int) int { return s.point() }), 0, 0},
	{"three at the map", threads(3, 1, func(s *toy, _ int) int { return s.publish() }), 0, 0},
}
