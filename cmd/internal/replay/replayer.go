package replay

import (
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
	load     load
	timeline *timeline // nil without Options.Picture
}

// add adds a request of a log in the given format to the queue. It is decided after the requests
// with earlier times.
func (r *replayer) add(rec *accesslog.Record, format accesslog.Format) error {
	r.report.addTime(time.Unix(0, rec.Time).UTC())
	text, cost := r.mode.pack(rec, format)
	if r.queue.add(rec.Time, cost, text) {
		return r.pass((r.queue.len() + 1) / 2)
	}
	return nil
}

// pass decides the n earliest requests of the queue.
func (r *replayer) pass(n int) error {
	return r.queue.pass(n, func(p pending, text []byte, late bool) error {
		granted, err := r.mode.decide(p, text)
		if err != nil {
			return err
		}
		if late {
			r.report.Late++
		}
		second := p.time / int64(time.Second)
		r.load.add(second, granted)
		if r.timeline != nil {
			r.timeline.add(second, granted)
		}
		return nil
	})
}

// load finds the second with the most requests of all clients.
type load struct {
	peak    suggest.Peak
	granted int // in the latest second
	left    int // granted in the busiest second
}

// add counts a decision in a second since 1970.
func (l *load) add(second int64, granted bool) {
	switch l.peak.Add(second) {
	case 0:
		return // it is late
	case 1:
		l.granted = 0
	}
	if granted {
		l.granted++
	}
	if l.peak.At == second {
		l.left = l.granted
	}
}

func (l *load) busiest() *Busiest {
	if l.peak.Most == 0 {
		return nil
	}
	left := l.left
	return &Busiest{time.Unix(l.peak.At, 0).UTC(), l.peak.Most, &left}
}
