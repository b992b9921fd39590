package daemon

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter takes a text for each token, with the error of the token.
type slowWriter struct {
	tokens chan error
	mu     sync.Mutex
	text   strings.Builder
}

func (w *slowWriter) Write(b []byte) (int, error) {
	if err := <-w.tokens; err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *slowWriter) written() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// A writer that blocks does not block the log. Lines that do not fit are counted.
func TestBackgroundWriterDropsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowWriter{tokens: make(chan error)}
		b := NewWriter(slow)
		line := strings.Repeat("x", 1<<10-1) + "\n"
		b.Write([]byte(line))
		synctest.Wait() // the first line is being written
		for range 1<<10 + 7 {
			if n, err := b.Write([]byte(line)); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		if n := b.dropped.Load(); n != 7 {
			t.Errorf("%d lines dropped, want 7", n)
		}
		for range 2 {
			slow.tokens <- nil
		}
		synctest.Wait()
		if n := len(slow.written()); n != 1<<20+1<<10 {
			t.Errorf("%d bytes written", n)
		}
		b.Write([]byte("lost\n"))
		slow.tokens <- errors.New("closed")
		b.Write([]byte("last\n"))
		slow.tokens <- nil
		b.Close()
		if !strings.HasSuffix(slow.written(), "\nlast\n") {
			t.Error("the writer does not go on after an error")
		}
		if b.Write([]byte("late\n")); b.dropped.Load() != 9 {
			t.Errorf("%d lines dropped, want 9", b.dropped.Load())
		}
	})
}

// The end of the proxy waits a bounded time for a writer that blocks.
func TestBackgroundWriterIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowWriter{tokens: make(chan error)}
		b := NewWriter(slow)
		b.Write([]byte("line\n"))
		begin := time.Now()
		b.Close()
		if d := time.Since(begin); d != flushTimeout {
			t.Errorf("waited %v", d)
		}
		close(slow.tokens)
	})
}
