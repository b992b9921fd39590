package daemon

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxPending   = 1 << 20     // bytes that wait to be written
	flushTimeout = time.Second // for what is left when the process stops
)

// Writer writes to another writer in the background, so that a full pipe does not stop
// the process. It drops lines that do not fit, and counts them. It is safe for concurrent use.
type Writer struct {
	w       io.Writer
	done    chan struct{}
	dropped atomic.Uint64 // lines

	mu      sync.Mutex
	pending []byte
	closed  bool
	wake    chan struct{} // holds a token if something is pending
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	b := &Writer{w: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b
}

// Write keeps a copy of text, which has whole lines, or drops it. It never waits and never fails.
func (b *Writer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.pending)+len(text) > maxPending {
		b.dropped.Add(lines(text))
		return len(text), nil
	}
	b.pending = append(b.pending, text...)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return len(text), nil
}

func (b *Writer) run() {
	defer close(b.done)
	var text []byte
	for range b.wake {
		b.mu.Lock()
		text, b.pending = b.pending, text[:0]
		b.mu.Unlock()
		if _, err := b.w.Write(text); err != nil {
			b.dropped.Add(lines(text))
		}
	}
}

// Close waits a bounded time until everything is written.
func (b *Writer) Close() {
	b.mu.Lock()
	b.closed = true
	close(b.wake)
	b.mu.Unlock()
	select {
	case <-b.done:
	case <-time.After(flushTimeout):
	}
}

func lines(text []byte) uint64 { return uint64(bytes.Count(text, []byte("\n"))) }
