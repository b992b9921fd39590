package textfile

import (
	"context"
	"errors"
	"os"
	"time"
)

const (
	// PollInterval is how often a file is read to find changes. A read costs some ten
	// microseconds. It finds changes that kernel notifications miss: a symbolic link replaced
	// anywhere on the path, and files that another machine writes.
	PollInterval = 250 * time.Millisecond
	// Patience is how long a read may take before it is applied as a problem.
	Patience = 10 * time.Second
)

// BySignal is why a text is applied, if not because of a poll.
const BySignal = "SIGHUP"

// Content is a text that was read, or the error that reading it returned.
type Content struct{ Text, Problem string }

// Err returns the problem as an error, or nil if there is none.
func (c Content) Err() error {
	if c.Problem == "" {
		return nil
	}
	return errors.New(c.Problem)
}

// Watcher applies a text whenever it changes.
type Watcher struct {
	Read    func() (string, error)
	Apply   func(c Content, why string)
	Applied Content // last, whether it was accepted or rejected
	seen    Content // by the last poll
}

// Watch polls the texts every PollInterval, and applies each of them on a signal, until ctx is
// done. It reads one text at a time: signals wait for the end of a read, and polls are left out.
func Watch(ctx context.Context, signals <-chan os.Signal, watchers ...*Watcher) {
	ticker := time.NewTicker(PollInterval)
	defer ticker.Stop()
	for {
		signalled := false
		select {
		case <-ctx.Done():
			return
		case <-signals:
			signalled = true
		case <-ticker.C:
		}
		for _, w := range watchers {
			switch c, ok := w.read(ctx); {
			case !ok:
				return
			case signalled:
				w.apply(c, BySignal)
			default:
				w.poll(c)
			}
		}
	}
}

// read applies a problem if the read takes longer than Patience. It returns false if ctx is done
// first.
func (w *Watcher) read(ctx context.Context) (c Content, ok bool) {
	done := start(w.Read)
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return Content{}, false
		case r := <-done:
			if r.err != nil {
				return Content{Problem: r.err.Error()}, true
			}
			return Content{Text: r.text}, true
		case <-late.C:
			w.apply(Content{Problem: "the file cannot be read: the file system does not answer"},
				"it is read again")
		}
	}
}

// poll applies a text that has changed, if two polls in a row have read it. A file may be written
// in several steps.
func (w *Watcher) poll(now Content) {
	if now == w.seen && now != w.Applied {
		w.apply(now, "the file changed")
	}
	w.seen = now
}

func (w *Watcher) apply(c Content, why string) {
	w.Applied = c
	w.Apply(c, why)
}
