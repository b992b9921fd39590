package replay

import (
	"hash/maphash"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

// replayer has a mode decide requests in the order of their times. It is not safe for concurrent
// use.
type replayer struct {
	mode     mode
	queue    queue
	report   Report // of the inputs and of the lines so far
	load     suggest.Peak
	timeline *timeline // nil without Options.Picture
}

// paths is the seed of the hashes of paths, which are only compared.
var paths = maphash.MakeSeed()

// add adds a request of a log in the given format to the queue. It is decided after the requests
// with earlier times. add reports false, and leaves the request out, if it is too late for that.
func (r *replayer) add(rec *accesslog.Record, format accesslog.Format) (taken bool, err error) {
	if !r.queue.takes(rec.Time) {
		return false, nil
	}
	r.report.addTime(time.Unix(0, rec.Time).UTC())
	text, cost := r.mode.pack(rec, format)
	path := uint32(maphash.Bytes(paths, rec.Path))
	if r.queue.add(pending{time: rec.Time, cost: cost, path: path}, text) {
		return true, r.pass((r.queue.len() + 1) / 2)
	}
	return true, nil
}

// pass decides the n earliest requests of the queue.
func (r *replayer) pass(n int) error {
	return r.queue.pass(n, func(p pending, text []byte) error {
		granted, err := r.mode.decide(p, text)
		if err != nil {
			return err
		}
		second := p.time / int64(time.Second)
		r.load.Add(second)
		if r.timeline != nil {
			r.timeline.add(second, granted)
		}
		return nil
	})
}

// busiest returns the second with the most requests of all keys.
func (r *replayer) busiest() *Busiest {
	if r.load.Most == 0 {
		return nil
	}
	return &Busiest{time.Unix(r.load.At, 0).UTC(), r.load.Most}
}
