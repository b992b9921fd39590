package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

// Input is one log. Its Name appears in reports and messages. Open is called once, when
// the input is next, so that a long list of files does not need as many file descriptors.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// Result is the outcome of a replay.
type Result struct {
	Report   Report
	replayer *replayer
}

// Run replays the inputs one after the other. If an input cannot be read to its end, or has
// no valid line, Run goes on with the next one. The result covers the requests that
// were replayed, and the error joins the errors of the inputs. If ctx is done, Run ends
// early, which is not an error, and the Report is marked as interrupted.
func Run(ctx context.Context, o Options, s accesslog.Schema, inputs []Input) (*Result, error) {
	r, err := newReplayer(o)
	if err != nil {
		return nil, err
	}
	s.Extra, s.Forwarded = r.extra, r.keyer.trusts
	res := &Result{replayer: r, Report: newReport(o)}
	var errs []error
	for _, in := range inputs {
		err := res.replayInput(ctx, in, s)
		if err != nil && ctx.Err() != nil {
			res.Report.Interrupted = true
			break
		}
		errs = append(errs, err)
	}
	res.fillReport()
	switch {
	case r.collector != nil:
		res.Report.Suggestion = r.suggestion(&o)
	case r.policy != nil:
		res.Report.Policy = r.policy.outcome(r.span.requests)
	}
	return res, errors.Join(append(errs, r.close(ctx))...)
}

// replayInput replays one input.
func (res *Result) replayInput(ctx context.Context, in Input, s accesslog.Schema) error {
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
	err = res.replayLines(reader, &file)
	file.Lines, file.Format = reader.Lines(), reader.Format()
	res.Report.Files = append(res.Report.Files, file)
	if err == nil && file.Format == accesslog.Undetected {
		err = fmt.Errorf("%s: no valid line in %d: want %s", in.Name, file.Lines, wantLog)
	}
	return err
}

const wantLog = "Common or Combined Log Format, or JSON lines with a time"

// maxShown is how many malformed lines a report quotes: enough to see the reason, and few
// enough not to hide the report.
const maxShown = 5

// replayLines replays the lines of a reader, up to its end.
func (res *Result) replayLines(reader *accesslog.Reader, file *File) error {
	var (
		rec accesslog.Record
		bad *accesslog.LineError
	)
	for {
		err := reader.Next(&rec)
		switch {
		case err == nil:
			err = res.replayer.replay(&rec)
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

// findInputs returns the named files and their length in bytes, or -1 if the length is not
// known. The name "-" is stdin. findInputs fails if a file does not exist, before a long
// replay begins.
func findInputs(names []string, stdin io.Reader) (list []Input, size int64, err error) {
	for _, name := range names {
		if name == "-" {
			size = -1
			list = append(list, Input{"stdin", func() (io.ReadCloser, error) {
				return io.NopCloser(stdin), nil
			}})
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		if size >= 0 && info.Mode().IsRegular() {
			size += info.Size()
		} else {
			size = -1
		}
		list = append(list, Input{name, func() (io.ReadCloser, error) { return os.Open(name) }})
	}
	return list, size, nil
}

// open opens the input unless ctx ends first: a named pipe waits for its writer. A file
// that is opened too late stays open until the process ends.
func (in Input) open(ctx context.Context) (io.ReadCloser, error) {
	type result struct {
		log io.ReadCloser
		err error
	}
	done := make(chan result, 1)
	go func() {
		log, err := in.Open()
		done <- result{log, err}
	}()
	select {
	case r := <-done:
		return r.log, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// withProgress returns the input with its bytes counted by the bar.
func (in Input) withProgress(bar *progressbar.ProgressBar) Input {
	open := in.Open
	in.Open = func() (io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r, bar), r}, nil
	}
	return in
}

const (
	// barInterval is how often the progress bar is drawn.
	barInterval = 100 * time.Millisecond
	// minProgress is the shortest input with a progress bar, in bytes: about a second.
	minProgress = 64 << 20
)

// newProgress returns a progress bar on stderr for an input of size bytes, -1 if the size is
// not known. It returns nil if stderr is not a terminal or the input is short. The bar
// counts bytes as they are read, which may be gzipped, and removes itself at the end.
func newProgress(stderr io.Writer, size int64) *progressbar.ProgressBar {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || size >= 0 && size < minProgress {
		return nil
	}
	return progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetDescription("replaying"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(barInterval),
		progressbar.OptionClearOnFinish(),
	)
}
