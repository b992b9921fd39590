package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

type source struct {
	input  Input
	file   File
	reader *accesslog.Reader // nil before the input is open
	rec    accesslog.Record  // the next request
	end    func()            // closes the input
	err    error

	malformed error // of its first malformed line
}

// replayInputs replays the inputs as one log, by time, and returns their errors in the order of the
// inputs. The next request is the earliest of the next requests of all inputs. So the merged log is
// sorted if each input is. The lines of an input keep their order, and the queue sorts them. If ctx
// is done, it ends early and marks the report.
func (r *replayer) replayInputs(ctx context.Context, inputs []Input) []error {
	for _, in := range inputs {
		src := &source{input: in, file: File{Name: in.Name}, end: func() {}}
		r.sources = append(r.sources, src)
		if r.report.Interrupted {
			continue
		}
		if err := r.begin(ctx, src); err != nil {
			r.finish(ctx, src, err)
			continue
		}
		r.open = append([]*source{src}, r.open...)
		r.settle()
	}
	for len(r.open) > 0 && !r.report.Interrupted {
		src := r.open[0]
		taken, err := r.add(&src.rec, src.reader.Format())
		if !taken {
			src.file.Late++
		}
		if err == nil {
			err = r.next(src)
		}
		if err != nil {
			r.open = r.open[1:]
			r.finish(ctx, src, err)
			continue
		}
		r.settle()
	}
	return append(r.close(), r.pass(r.queue.len()))
}

// settle moves the first open source behind the ones whose next requests are earlier. Few are, as
// long as the files follow each other.
func (r *replayer) settle() {
	for i := 1; i < len(r.open) && r.open[i].rec.Time < r.open[i-1].rec.Time; i++ {
		r.open[i-1], r.open[i] = r.open[i], r.open[i-1]
	}
}

func (r *replayer) begin(ctx context.Context, src *source) error {
	log, err := src.input.Open()
	if err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx) // ends the reading when the source ends early
	src.end = func() {
		cancel()
		log.Close()
	}
	if src.reader, err = accesslog.NewReader(reading, src.input.Name, log, r.schema); err != nil {
		return err
	}
	return r.next(src)
}

// finish closes a source after its last request. The error is io.EOF, or why there are no more.
func (r *replayer) finish(ctx context.Context, src *source, err error) {
	src.end()
	switch atEnd := src.reader != nil && errors.Is(err, io.EOF); {
	case !atEnd && ctx.Err() != nil:
		r.report.Interrupted = true
	case !atEnd:
		src.err = err
	case src.reader.Format() == accesslog.Undetected:
		src.err = src.reader.NoFormat()
	}
}

// close closes what is open, and reports the sources in the order of the inputs. A file without any
// line is an error only if no other file has a request: a log that has just been rotated is empty.
func (r *replayer) close() (errs []error) {
	for _, src := range r.open {
		src.end()
	}
	for _, src := range r.sources {
		if src.reader != nil {
			src.file.Lines, src.file.Format = src.reader.Lines, src.reader.Format()
			r.report.hint = cmp.Or(r.report.hint, src.reader.Hint())
			r.report.Files = append(r.report.Files, src.file)
		}
		if f := &src.file; src.err == nil && 2*f.Malformed > f.Lines-f.Others {
			src.err = fmt.Errorf("%s: %d of %d lines are malformed, for example %w", f.Name,
				f.Malformed, f.Lines, src.malformed)
		}
		if errors.Is(src.err, accesslog.ErrEmpty) && r.report.Requests > 0 {
			src.err = nil
		}
		errs = append(errs, src.err, r.report.checkOrder(&src.file))
	}
	return errs
}

// maxShown is how many malformed lines and messages a report quotes: enough to see the reason, and
// few enough not to hide the report.
const maxShown = 5

// next reads the next request of a source, and counts the other lines before it.
func (r *replayer) next(src *source) error {
	for {
		err := src.reader.Next(&src.rec)
		if err == nil {
			src.file.NoZone = src.file.NoZone || src.rec.NoZone
			return nil // without the allocation of bad
		}
		var bad *accesslog.LineError
		if !errors.As(err, &bad) {
			return err
		}
		shown := &r.report.Malformed
		if errors.Is(bad, accesslog.ErrMessage) {
			src.file.Others++
			shown = &r.report.Others
		} else if src.file.Malformed++; src.malformed == nil {
			src.malformed = bad
		}
		if len(*shown) < maxShown {
			*shown = append(*shown, bad.Error())
		}
	}
}

// Input is one log. Its Name appears in reports and messages.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// findInputs returns the named files. The name "-" is stdin. A file that is named twice is
// one input. findInputs fails if there is no such file, before a long replay begins.
func findInputs(names []string, stdin io.Reader) (list []Input, err error) {
	var found []os.FileInfo
	for i, name := range names {
		if name == "-" {
			if !slices.Contains(names[:i], name) {
				list = append(list, Input{"stdin", func() (io.ReadCloser, error) {
					return io.NopCloser(stdin), nil
				}})
			}
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(found, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
			continue
		}
		found = append(found, info)
		list = append(list, Input{name, func() (io.ReadCloser, error) { return os.Open(name) }})
	}
	return list, nil
}
