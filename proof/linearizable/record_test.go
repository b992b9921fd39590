package linearizable

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// recorder makes calls on a limiter and records when each was made and when it returned. Its
// time is the number of these events. All methods but history may be called concurrently.
type recorder struct {
	session *session
	events  atomic.Int64
	calls   [][]porcupine.Operation // by goroutine
}

func newRecorder(s *session, goroutines int) *recorder {
	return &recorder{session: s, calls: make([][]porcupine.Operation, goroutines)}
}

// call makes a call and records it for the given goroutine.
func (r *recorder) call(goroutine int, in *request) {
	call := r.events.Add(1)
	if in.yield {
		runtime.Gosched()
	}
	out := r.session.do(in)
	r.calls[goroutine] = append(r.calls[goroutine], porcupine.Operation{
		ClientId: goroutine, Input: in, Call: call, Output: out, Return: r.events.Add(1),
	})
}

// race makes the requests of each goroutine in a goroutine of its own. All goroutines start at
// the same time.
func (r *recorder) race(requests [][]*request) {
	var all sync.WaitGroup
	var arrived atomic.Int64
	for i := range requests {
		all.Go(func() {
			arrived.Add(1)
			for spins := 0; arrived.Load() < int64(len(requests)); spins++ {
				if spins > 100 { // the other goroutines may have no processor
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

// history returns all calls, and marks those that overlapped another call.
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

// overlaps records that the call other was under way at the same time.
func (r *request) overlaps(other *request) {
	r.overlapped = true
	r.changing = r.changing || other.verb == setLimit
	if other.verb <= allowN {
		r.inserting = r.inserting || other.key == r.key
		r.evicting = r.evicting || other.key != r.key
	}
}

// byCall returns the history in the order in which the calls were made.
func byCall(history []porcupine.Operation) []porcupine.Operation {
	return slices.SortedFunc(slices.Values(history), func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
}
