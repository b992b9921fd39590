package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// Input is one log. Its Name is for reports and messages. Open is called once, when its
// turn has come, so that a long list of files does not need as many file descriptors.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// maxShown is how many malformed lines are reported in full: enough to see what is wrong
// with a log, and not so many that they hide the report.
const maxShown = 5

// Run replays the inputs one after the other. An input that cannot be read to its end, or
// has no valid line, does not keep it from the next. The result holds what was replayed,
// and the error joins what went wrong. If ctx is done, Run ends early, which is no error,
// and the Report says so.
func Run(ctx context.Context, o Options, s accesslog.Schema, inputs []Input) (*Result, error) {
	r, err := newReplayer(o)
	if err != nil {
		return nil, err
	}
	s.Extra = r.extra
	res := &Result{replayer: r, Report: newReport(o)}
	var errs []error
	for _, in := range inputs {
		err := res.file(ctx, in, s)
		if err != nil && ctx.Err() != nil {
			res.Report.Interrupted = true
			break
		}
		errs = append(errs, err)
	}
	res.finish()
	return res, errors.Join(errs...)
}

// Result is what a replay has found.
type Result struct {
	Report   Report
	replayer *replayer
}

// file replays one input.
func (res *Result) file(ctx context.Context, in Input, s accesslog.Schema) error {
	ctx, cancel := context.WithCancel(ctx) // ends the reading when this returns early
	defer cancel()
	log, err := in.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	reader, err := accesslog.NewReader(ctx, in.Name, log, s)
	if err != nil {
		return err
	}
	file := File{Name: in.Name}
	err = res.requests(reader, &file)
	file.Lines, file.Format = reader.Lines(), reader.Format()
	res.Report.Files = append(res.Report.Files, file)
	if err == nil && file.Format == accesslog.Undetected {
		err = fmt.Errorf("%s: no valid line in %d: want %s", in.Name, file.Lines, wantLog)
	}
	return err
}

// wantLog says what an input should have been.
const wantLog = "Common or Combined Log Format, or JSON lines with a time"

// requests replays what the reader has, up to its end.
func (res *Result) requests(reader *accesslog.Reader, file *File) error {
	var (
		rec accesslog.Record
		bad *accesslog.LineError
	)
	for {
		err := reader.Next(&rec)
		switch {
		case err == nil:
			err = res.replayer.add(&rec)
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			err = nil
			file.Malformed++
			if len(res.Report.Malformed) < maxShown {
				res.Report.Malformed = append(res.Report.Malformed, bad.Error())
			}
		}
		if err != nil {
			return err
		}
	}
}
