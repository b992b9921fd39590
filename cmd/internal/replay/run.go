package replay

import (
	"context"
	"errors"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// Result is the outcome of a replay.
type Result struct {
	Report   Report
	replayer *replayer
	follow   func(*Report) error
}

// Run replays the inputs as one log, by time. If an input cannot be read to its end, or has no
// valid line, Run goes on with the others. The result covers the requests that were replayed, and
// the error joins the errors of the inputs. If ctx is done, Run ends early, which is not an error,
// and marks the Report as interrupted.
func Run(ctx context.Context, o Options, s accesslog.Schema, inputs []Input) (*Result, error) {
	r, err := newReplayer(o)
	if err != nil {
		return nil, err
	}
	s.Extra, s.Forwarded = r.extra, r.keyer.trusts
	res := &Result{replayer: r, Report: newReport(o), follow: o.Follow}
	errs := res.replayInputs(ctx, inputs, s)
	res.fillReport()
	if r.collector != nil {
		res.Report.Suggestion = r.suggestion(&o, s)
	}
	return res, errors.Join(errs...)
}
