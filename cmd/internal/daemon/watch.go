package daemon

import (
	"context"
	"errors"
	"os"
	"sync"
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

// startReading reads in its own goroutine, because a file on a network may block for ever.
func startReading(read func() (string, error)) <-chan Content {
	result := make(chan Content, 1)
	go func() {
		text, err := read()
		if err != nil {
			result <- Content{Problem: err.Error()}
			return
		}
		result <- Content{Text: text}
	}()
	return result
}

// Watcher applies a text whenever it changes.
type Watcher struct {
	Read    func() (string, error)
	Apply   func(c Content, why string)
	Applied Content // last, whether it was accepted or rejected
	seen    Content // by the last poll
}

// Watch runs watchers until ctx is done. Each polls every PollInterval, and gets every signal.
func Watch(ctx context.Context, signals <-chan os.Signal, watchers ...*Watcher) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	var forEach []chan os.Signal
	for _, w := range watchers {
		own := make(chan os.Signal, 1)
		forEach = append(forEach, own)
		ticker := time.NewTicker(PollInterval)
		defer ticker.Stop()
		tasks.Go(func() { w.Run(ctx, own, ticker.C) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			for _, own := range forEach {
				select {
				case own <- s:
				default: // the text will be read again anyway
				}
			}
		}
	}
}

// Run applies the text on each signal, and polls it on each tick, until ctx is done. It reads once
// at a time: signals wait for the end of a read, and ticks are skipped.
func (w *Watcher) Run(ctx context.Context, signals <-chan os.Signal, ticks <-chan time.Time) {
	for {
		why := ""
		select {
		case <-ctx.Done():
			return
		case <-signals:
			why = BySignal
		case <-ticks:
		}
		c, ok := w.read(ctx)
		switch {
		case !ok:
			return
		case why == "":
			w.poll(c)
		default:
			w.apply(c, why)
		}
	}
}

// read reads the text. It returns false if ctx is done first.
func (w *Watcher) read(ctx context.Context) (c Content, ok bool) {
	result := startReading(w.Read)
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return Content{}, false
		case c := <-result:
			return c, true
		case <-late.C:
			w.apply(Content{Problem: "the file cannot be read: the file system does not answer"},
				"it is read again")
		}
	}
}

// Poll reads the text and applies it if it has changed and two polls in a row have read the same. A
// file may be written in several steps.
func (w *Watcher) Poll() { w.poll(<-startReading(w.Read)) }

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
