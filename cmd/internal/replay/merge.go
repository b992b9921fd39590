package replay

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
)

// merger replays inputs as one log, by time. The next request is the earliest of the next requests
// of all inputs. So the merged log is sorted if each input is. The lines of an input keep their
// order: a late line is replayed next.
//
// A regular file is open only from the time of its first request to its end. So the memory and the
// file descriptors depend on how many files overlap, and not on how many there are.
type merger struct {
	r       *replayer
	schema  accesslog.Schema
	sources []*source // all, in the order of the inputs
	waiting []*source // not yet open, by start
	open    sources   // a heap

	allowMalformed bool
	follow         func(*Report) error
	tick           <-chan time.Time // when the report so far is due, if the log is followed
}

// source is an input of a merger.
type source struct {
	input  Input
	order  int   // its index among the inputs
	start  int64 // the time of its first request, or 0 if it is not known
	file   File
	reader *accesslog.Reader // nil before the input is open
	rec    accesslog.Record  // the next request
	end    func()            // closes the input
	err    error

	malformed error // of its first malformed line
}

// replayInputs replays the inputs, and returns their errors in the order of the inputs. If ctx
// is done, it ends early and marks the report.
func (r *replayer) replayInputs(
	ctx context.Context, inputs []Input, s accesslog.Schema, o *Options,
) []error {
	m := &merger{r: r, schema: s, allowMalformed: o.AllowMalformed, follow: o.Follow}
	for i, in := range inputs {
		m.sources = append(m.sources, &source{input: in, order: i, file: File{Name: in.Name}})
	}
	if m.follow != nil {
		ticker := time.NewTicker(refreshInterval)
		defer ticker.Stop()
		m.tick = ticker.C
	}
	for _, src := range m.sources {
		m.add(ctx, src)
	}
	slices.SortStableFunc(m.waiting, func(a, b *source) int { return cmp.Compare(a.start, b.start) })
	for m.openDue(ctx); len(m.open) > 0 && !r.report.Interrupted; m.openDue(ctx) {
		src := m.open[0]
		err := r.add(&src.rec, src.reader.Format())
		if err == nil {
			err = m.next(src)
		}
		switch {
		case err != nil:
			heap.Pop(&m.open)
			m.finish(ctx, src, err)
		case len(m.open) > 1:
			heap.Fix(&m.open, 0)
		}
	}
	return append(m.close(), r.pass(r.queue.len()))
}

// add opens a source. Among several, it closes a regular file again when it has its start.
func (m *merger) add(ctx context.Context, src *source) {
	if m.r.report.Interrupted {
		return
	}
	log, err := src.input.open(ctx)
	if err != nil {
		m.finish(ctx, src, err)
		return
	}
	if plain := uncounted(log); len(m.sources) > 1 && isRegular(plain) {
		src.start = m.findStart(ctx, src, plain)
		plain.Close()
		m.waiting = append(m.waiting, src)
		return
	}
	m.begin(ctx, src, log)
}

// isRegular reports whether a log is a regular file, which can be opened again.
func isRegular(log io.Reader) bool {
	file, ok := log.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// findStart returns the time of the first request of a log. If there is none it returns 0, so
// that the source is the first to be opened and to have an error.
func (m *merger) findStart(ctx context.Context, src *source, log io.Reader) int64 {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, err := accesslog.NewReader(ctx, src.input.Name, log, m.schema)
	var rec accesslog.Record
	var bad *accesslog.LineError
	for err == nil || errors.As(err, &bad) {
		if err = reader.Next(&rec); err == nil {
			return rec.Time
		}
	}
	return 0
}

// openDue opens the sources that may have the next request.
func (m *merger) openDue(ctx context.Context) {
	for len(m.waiting) > 0 && !m.r.report.Interrupted &&
		(len(m.open) == 0 || m.waiting[0].start < m.open[0].rec.Time) {
		src := m.waiting[0]
		m.waiting = m.waiting[1:]
		log, err := src.input.open(ctx)
		if err != nil {
			m.finish(ctx, src, err)
			continue
		}
		m.begin(ctx, src, log)
	}
}

// begin reads the first request of a source.
func (m *merger) begin(ctx context.Context, src *source, log io.ReadCloser) {
	reading, cancel := context.WithCancel(ctx) // ends the reading when the source ends early
	src.end = func() {
		cancel()
		log.Close()
	}
	var err error
	if src.reader, err = accesslog.NewReader(reading, src.input.Name, log, m.schema); err == nil {
		src.reader.OnTick(m.tick, m.report)
		err = m.next(src)
	}
	if err != nil {
		m.finish(ctx, src, err)
		return
	}
	src.start = src.rec.Time
	heap.Push(&m.open, src)
}

// report decides the requests so far and reports them.
func (m *merger) report() error {
	if err := m.r.pass(m.r.queue.len()); err != nil {
		return err
	}
	soFar := m.r.result()
	m.addFiles(&soFar.Report)
	return m.follow(&soFar.Report)
}

// finish closes a source after its last request. The error is io.EOF, or why there are no more.
func (m *merger) finish(ctx context.Context, src *source, err error) {
	if src.end != nil {
		src.end()
	}
	switch atEnd := src.reader != nil && errors.Is(err, io.EOF); {
	case !atEnd && ctx.Err() != nil:
		m.r.report.Interrupted = true
	case !atEnd:
		src.err = err
	case src.reader.Format() == accesslog.Undetected:
		src.err = src.reader.NoFormat()
	}
}

// close closes what is open, and reports the sources in the order of the inputs. A file without any
// line is an error only if no other file has a request: a log that has just been rotated is empty.
func (m *merger) close() (errs []error) {
	for _, src := range m.open {
		src.end()
	}
	m.addFiles(&m.r.report)
	for _, src := range m.sources {
		if f := &src.file; src.err == nil && 2*f.Malformed > f.Lines && !m.allowMalformed {
			src.err = fmt.Errorf("%s: %d of %d lines are malformed, for example %w;"+
				" --allow-malformed accepts that", f.Name, f.Malformed, f.Lines, src.malformed)
		}
		if errors.Is(src.err, accesslog.ErrEmpty) && m.r.report.Requests > 0 {
			src.err = nil
		}
		errs = append(errs, src.err)
	}
	return errs
}

// addFiles adds the sources that were opened.
func (m *merger) addFiles(rep *Report) {
	for _, src := range m.sources {
		if src.reader != nil {
			src.file.Lines, src.file.Format = src.reader.Lines(), src.reader.Format()
			src.file.Others = src.reader.Others()
			rep.hint = cmp.Or(rep.hint, src.reader.Hint())
			rep.Files = append(rep.Files, src.file)
		}
	}
}

// maxShown is how many malformed lines a report quotes: enough to see the reason, and few
// enough not to hide the report.
const maxShown = 5

// next reads the next request of a source, and counts the malformed lines before it.
func (m *merger) next(src *source) error {
	for {
		err := src.reader.Next(&src.rec)
		if err == nil {
			return nil
		}
		var bad *accesslog.LineError
		if !errors.As(err, &bad) {
			return err
		}
		if src.file.Malformed++; src.malformed == nil {
			src.malformed = bad
		}
		if len(m.r.report.Malformed) < maxShown {
			m.r.report.Malformed = append(m.r.report.Malformed, bad.Error())
		}
	}
}

// sources is a heap of open sources by the time of their next request. Of two requests at the same
// time, the one of the source that began earlier comes first: its file was rotated earlier.
type sources []*source

func (s sources) Len() int { return len(s) }

func (s sources) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[i].rec.Time, s[j].rec.Time), cmp.Compare(s[i].start, s[j].start),
		cmp.Compare(s[i].order, s[j].order)) < 0
}

func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

// Push and Pop make sources a heap.Interface.
func (s *sources) Push(src any) { *s = append(*s, src.(*source)) }

// Pop removes the last source.
func (s *sources) Pop() any {
	last := len(*s) - 1
	src := (*s)[last]
	*s = (*s)[:last]
	return src
}
