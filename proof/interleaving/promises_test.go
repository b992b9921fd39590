package interleaving

import (
	"errors"
	"slices"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
)

// watch checks C4 and C6 on the steps of each call. It records whether the keys of a call were
// in the table all the time.
type watch struct {
	limiter registry.Limiter
	most    int    // the greatest capacity
	calls   []call // the current call of each thread
	absent  uint64 // a bit for each thread: a key of its call was not in the table
}

func newWatch(l registry.Limiter, s *scenario) *watch {
	w := &watch{limiter: l, most: capacity, calls: make([]call, len(s.threads()))}
	for _, c := range slices.Concat(s.threads()...) {
		if c.setsLimit() {
			w.most = max(w.most, limits[c.n].Capacity)
		}
	}
	return w
}

// called records that a thread makes c.
func (w *watch) called(thread int, c call) {
	w.calls[thread] = c
	w.absent &^= 1 << thread
}

// stepped is called after every step.
func (w *watch) stepped() {
	for i, c := range w.calls {
		if w.absent>>i&1 == 0 && slices.ContainsFunc(c.keys(), func(k string) bool {
			return !w.limiter.Has(k)
		}) {
			w.absent |= 1 << i
		}
	}
}

func (w *watch) recorded() uint64 { return w.absent }

// check returns an error if the steps of a call break C4 or C6.
func (w *watch) check(r modelcheck.Returned) error {
	a, c := r.Result.(answer), r.Name.(call)
	there := w.absent>>r.Thread&1 == 0
	looks, impossible := c.looks(), c.op <= takeAll && c.n > w.most
	var insertLock, mapLock, wrote, tried, sealed bool
	for _, s := range r.Steps {
		switch s.Op {
		case modelcheck.Lock:
			insertLock = true
		case modelcheck.ComputeBegin, modelcheck.MapStore:
			mapLock = true
		case modelcheck.CompareAndSwap:
			tried = true
			sealed = sealed || s.Wrote() && s.After()>>63 == 1
		case modelcheck.Load:
			sealed = sealed || s.Result>>63 == 1
		}
		// A CompareAndSwapPointer stores the first reading of the clock.
		wrote = wrote || s.Wrote() && s.Op != modelcheck.CompareAndSwapPointer
	}
	switch {
	case c.op == reset || c.op == hold || c.setsLimit() || a.failed:
		return nil
	case (looks || impossible) && (insertLock || mapLock || tried):
		return errors.New("C4: a call that takes nothing took a lock or wrote to a bucket")
	case (looks || impossible) && there && wrote:
		return errors.New("C4: a call that takes nothing wrote")
	case there && insertLock:
		return errors.New("C6: a call on a key in the table took the lock of inserts")
	case !there || sealed: // a new key, or a bucket that has to be moved
		return nil
	case mapLock:
		return errors.New("C6: a call on a key in the table took a lock")
	case c.op == cancel || c.op == settle: // neither granted nor refused
		return nil
	case !a.Allowed && wrote && c.op != takeAll: // a TakeAll may have lost a race
		return errors.New("C4: a refused call on a key in the table wrote")
	case !a.Allowed && tried && r.Alone && !c.undoes():
		return errors.New("C4: a refused call on a key in the table did not only load")
	}
	return nil
}
