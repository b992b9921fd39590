package textfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// follow returns a watcher, and the log of what it applies, and why.
func follow(text string, read func() (string, error)) (*Watcher, chan string) {
	log := make(chan string, 100)
	return &Watcher{Read: read, Applied: Content{Text: text}, Apply: func(c Content, why string) {
		log <- fmt.Sprint(why, ": ", c.Text, c.Err())
	}}, log
}

// wantLog wants these lines in a log, and no more.
func wantLog(t *testing.T, log chan string, want ...string) {
	t.Helper()
	for _, line := range append(want, "") {
		got := ""
		if len(log) > 0 {
			got = <-log
		}
		if !strings.Contains(got, line) || line == "" && got != "" {
			t.Errorf("got %q, want %q", got, line)
		}
	}
}

// A file is not applied while it still changes, and not again while it stays the same. That it is
// gone is applied once. Any symbolic link on the path to the file may be replaced, as Kubernetes
// replaces one in the directory of the file.
func TestPolls(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(text string) {
		t.Helper()
		version := file(t, text)
		err := os.Symlink(filepath.Dir(version), in("next"))
		if err = errors.Join(err, os.Rename(in("next"), in("..data"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..data/file", in("file")); err != nil {
		t.Fatal(err)
	}
	w, log := follow("1", func() (string, error) { return Read(in("file")) })
	polls := func(n int, want ...string) {
		t.Helper()
		for range n {
			c, _ := w.read(t.Context())
			w.poll(c)
		}
		wantLog(t, log, want...)
	}
	write("1")
	polls(3)
	for _, part := range []string{"", "2", "23"} {
		write(part)
		polls(1)
	}
	polls(4, "the file changed: 23<nil>")
	if err := os.Remove(in("..data")); err != nil {
		t.Fatal(err)
	}
	polls(4, in("file")+": no such file")
	write("23")
	polls(4, "the file changed: 23<nil>")
}

// A file system that does not answer stops neither the reads after it nor the end.
func TestAReadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, third := make(chan struct{}), make(chan struct{})
		var reads atomic.Int64
		w, log := follow("", func() (string, error) {
			switch reads.Add(1) {
			case 1:
				<-first
			case 3:
				<-third
			}
			return "1", nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		signals, ended := make(chan os.Signal, 1), make(chan struct{})
		go func() {
			Watch(ctx, signals, w)
			close(ended)
		}()
		signals <- syscall.SIGHUP
		time.Sleep(2 * Patience)
		wantLog(t, log, "does not answer")
		close(first)
		synctest.Wait()
		wantLog(t, log, "SIGHUP: 1")
		time.Sleep(3 * PollInterval)
		cancel()
		<-ended // although the read hangs
		close(third)
	})
}
