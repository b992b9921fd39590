package interleaving

import (
	"errors"
	"slices"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/registry"
)

// watch checks C4 and C6 on the steps of each call. It knows of the call whether its keys
// were in the table all the time.
type watch struct {
	limiter registry.Limiter
	calls   []ask  // by thread
	absent  uint64 // a bit for each thread, set if a key was not in the table
}

func newWatch(l registry.Limiter, threads int) *watch {
	return &watch{limiter: l, calls: make([]ask, threads)}
}

func (w *watch) begins(thread int, c ask) {
	w.calls[thread] = c
	w.absent &^= 1 << thread
}

// look comes after every step.
func (w *watch) look() {
	for i, c := range w.calls {
		if w.absent>>i&1 == 0 && slices.ContainsFunc(c.keys(), func(k string) bool {
			return !w.limiter.Has(k)
		}) {
			w.absent |= 1 << i
		}
	}
}

func (w *watch) memory() uint64 { return w.absent }

func (w *watch) returns(r modelcheck.Returned) error {
	a, c := r.Result.(answered), r.Name.(ask)
	there := w.absent>>r.Thread&1 == 0
	var insertLock, mapLock, wrote, tried, sealed bool
	for _, s := range r.Steps {
		switch s.Op {
		case modelcheck.Lock:
			insertLock = true
		case modelcheck.ComputeBegin, modelcheck.MapStore:
			mapLock = true
		case modelcheck.CompareAndSwap:
			tried = true
		case modelcheck.Load:
			sealed = sealed || s.Result>>63 == 1
		}
		wrote = wrote || s.Wrote() && s.Op != modelcheck.CompareAndSwapPointer // the clock's first reading
	}
	switch {
	case c.op == wipe || a.failed:
		return nil
	case (c.op == look || c.n > capacity) && (insertLock || mapLock || tried):
		return errors.New("C4: a call that takes nothing took a lock, or wrote to a bucket")
	case (c.op == look || c.n > capacity) && there && wrote:
		return errors.New("C4: a call that takes nothing wrote")
	case there && insertLock:
		return errors.New("C6: a call on a key in the table took the lock of inserts")
	case !there || sealed: // a new key, or a bucket that has to be moved
		return nil
	case mapLock:
		return errors.New("C6: a call on a key in the table took a lock")
	case !a.Allowed && wrote && c.op != all: // which may have lost a race
		return errors.New("C4: a refused call on a key in the table wrote")
	case !a.Allowed && tried && r.Alone && !c.undoes():
		return errors.New("C4: a refused call on a key in the table did not only load")
	}
	return nil
}
