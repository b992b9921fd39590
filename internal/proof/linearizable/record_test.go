package linearizable

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// recorder makes calls on a limiter and takes down when each was made and returned, on a
// clock of its own that counts these events. It is safe for concurrent use but for
// history.
type recorder struct {
	l      keyed
	baton  *baton
	events atomic.Int64
	calls  [][]porcupine.Operation // by goroutine
}

func newRecorder(l keyed, b *baton, goroutines int) *recorder {
	return &recorder{l: l, baton: b, calls: make([][]porcupine.Operation, goroutines)}
}

// call makes the call r in the given goroutine.
func (r *recorder) call(goroutine int, in *request) reply {
	call := r.events.Add(1)
	if in.yield {
		runtime.Gosched()
	}
	out := in.on(r.l, r.baton)
	r.calls[goroutine] = append(r.calls[goroutine], porcupine.Operation{
		ClientId: goroutine, Input: in, Call: call, Output: out, Return: r.events.Add(1),
	})
	return out
}

// race makes each goroutine's requests in a goroutine of its own, all from the same
// moment on.
func (r *recorder) race(requests [][]*request) {
	var all sync.WaitGroup
	var arrived atomic.Int64
	for i := range requests {
		all.Go(func() {
			arrived.Add(1)
			for spins := 0; arrived.Load() < int64(len(requests)); spins++ {
				if spins > 100 { // the others may have no processor
					runtime.Gosched()
				}
			}
			for _, in := range requests[i] {
				r.call(i, in)
			}
		})
	}
	all.Wait()
}

func (r *recorder) history() []porcupine.Operation {
	history := slices.Concat(r.calls...)
	for i, a := range history {
		for _, b := range history[:i] {
			if a.Call < b.Return && b.Call < a.Return {
				in, other := a.Input.(*request), b.Input.(*request)
				in.overlaps(other)
				other.overlaps(in)
			}
		}
	}
	return history
}

// overlaps notes that another call was under way at the same time.
func (r *request) overlaps(other *request) {
	r.overlapped = true
	r.inserting = r.inserting || other.key == r.key && other.verb <= takeCost
}

func byCall(history []porcupine.Operation) []porcupine.Operation {
	return slices.SortedFunc(slices.Values(history), func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
}
