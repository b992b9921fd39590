package replay

import (
	"context"
	"errors"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// Run replays the inputs as one log, by time. If an input cannot be read to its end, or has no
// valid line, Run goes on with the others. The report covers the requests that were replayed, and
// the error joins the errors of the inputs. If ctx is done, Run ends early, which is not an error,
// and marks the report as interrupted.
func Run(ctx context.Context, o Options, inputs []Input) (*Report, error) {
	m, err := newMode(&o)
	if err != nil {
		return nil, err
	}
	r := &replayer{
		mode: m, queue: newQueue(queueRequests), report: newReport(&o), schema: o.schema(),
	}
	r.schema.Extra = m.fields()
	errs := r.replayInputs(ctx, inputs)
	if r.report.NoAnswer != "" { // no number from a wrong order
		rep := newReport(&o)
		rep.Files, rep.NoAnswer = r.report.Files, r.report.NoAnswer
		return rep, errors.Join(errs...)
	}
	m.fill(r.report)
	return r.report, errors.Join(errs...)
}

type mode interface {
	// fields returns the extra fields that pack reads, in the order of Record.Fields.
	fields() []string
	// pack returns what decide needs of a request, besides its time.
	pack(rec *accesslog.Record, format accesslog.Format) pending
	// decide decides a request. The times never step back.
	decide(p pending) (granted bool, err error)
	// fill fills in the outcome of the requests so far.
	fill(rep *Report)
}

func newMode(o *Options) (mode, error) {
	switch {
	case o.Policy != nil:
		return newPolicyMode(o)
	case o.Suggest != nil:
		return newSuggestionMode(o)
	}
	return newLimitMode(o)
}

// replayer has a mode decide requests in the order of their times. It is not safe for concurrent
// use.
type replayer struct {
	mode   mode
	queue  queue
	report *Report // of the inputs and of the lines so far
	load   peak    // of all keys

	schema  accesslog.Schema
	sources []*source // all, in the order of the inputs
	open    []*source // by their next requests, the earliest first
}

// add adds a request of a log in the given format to the queue. It is decided after the requests
// with earlier times. add reports false, and leaves the request out, if it is too late for that.
func (r *replayer) add(rec *accesslog.Record, format accesslog.Format) (taken bool, err error) {
	if !r.queue.takes(rec.Time) {
		return false, nil
	}
	t, rep := time.Unix(0, rec.Time).UTC(), r.report
	if rep.Requests++; rep.Requests == 1 || t.Before(rep.First) {
		rep.First = t
	}
	if t.After(rep.Last) {
		rep.Last = t
	}
	p := r.mode.pack(rec, format)
	p.time = rec.Time
	if r.queue.add(p) {
		return true, r.pass((r.queue.len() + 1) / 2)
	}
	return true, nil
}

func (r *replayer) pass(n int) error {
	return r.queue.pass(n, func(p pending) error {
		granted, err := r.mode.decide(p)
		if err != nil {
			return err
		}
		second := p.time / int64(time.Second)
		if r.load.add(second) {
			r.report.Busiest = &Busiest{time.Unix(second, 0).UTC(), r.load.most}
		}
		if p.client != nil {
			p.client.visit(p.path, second)
		}
		r.report.timeline.add(second, granted)
		return nil
	})
}
