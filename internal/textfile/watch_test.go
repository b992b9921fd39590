package textfile

import (
	"context"
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

// followed is the watcher of a file. Its log has what is applied, and why.
type followed struct {
	*Watcher
	file string
	log  chan string
}

func follow(text, file string, read func() (string, error)) *followed {
	f := &followed{file: file, log: make(chan string, 100)}
	f.Watcher = &Watcher{Read: read, Applied: Content{Text: text}, Apply: func(c Content, why string) {
		f.log <- fmt.Sprint(why, ": ", c.Text, c.Err())
	}}
	return f
}

func followFile(text, file string) *followed {
	return follow(text, file, func() (string, error) { return Read(file) })
}

// polls polls the file n times, and wants these lines in the log.
func (f *followed) polls(t *testing.T, n int, want ...string) {
	t.Helper()
	for range n {
		f.poll(f.read())
	}
	for _, line := range want {
		if len(f.log) == 0 {
			t.Fatalf("nothing is applied, want %s", line)
		}
		if got := <-f.log; !strings.Contains(got, line) {
			t.Errorf("got %s, want %s", got, line)
		}
	}
	if len(f.log) > 0 {
		t.Errorf("also %s", <-f.log)
	}
}

func (f *followed) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file is not applied while it still changes, and not again while it stays the same. That it is
// gone is applied once.
func TestPolls(t *testing.T) {
	f := followFile("1", file(t, "1"))
	f.polls(t, 3)
	for _, part := range []string{"", "2", "23"} {
		f.write(t, part)
		f.polls(t, 1)
	}
	f.polls(t, 4, "the file changed: 23<nil>")
	if err := os.Remove(f.file); err != nil {
		t.Fatal(err)
	}
	f.polls(t, 4, "the file changed: open "+f.file+": no such file")
	f.write(t, "23")
	f.polls(t, 4, "the file changed: 23<nil>")
}

// Any symbolic link on the path to the file may be replaced. Kubernetes replaces one in the
// directory of the file, other tools replace the directory.
func TestPollsBehindLinks(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	link := func(target, name string) {
		t.Helper()
		err := os.Symlink(target, in("next"))
		if err == nil {
			err = os.Rename(in("next"), in(name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	version := func(n int) {
		t.Helper()
		name := fmt.Sprint("v", n)
		err := os.Mkdir(in(name), 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(in(name), "file"), []byte(name), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		link(name, "..data")
	}
	version(0)
	link("..data/file", "file")
	for _, name := range []string{in("file"), in("..data/file")} {
		f := followFile("", name)
		for n := range 3 {
			version(len(name)*10 + n)
			f.polls(t, 2, fmt.Sprint(": v", len(name)*10+n))
		}
	}
}

// A file system that does not answer stops neither the reads after it nor the end.
func TestAReadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, third := make(chan struct{}), make(chan struct{})
		var reads atomic.Int64
		f := follow("", "file", func() (string, error) {
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
			Watch(ctx, signals, f.Watcher)
			close(ended)
		}()
		signals <- syscall.SIGHUP
		time.Sleep(2 * Patience)
		f.polls(t, 0, "does not answer")
		close(first)
		synctest.Wait()
		f.polls(t, 0, "SIGHUP: 1")
		time.Sleep(3 * PollInterval)
		cancel()
		<-ended // although the read hangs
		close(third)
	})
}
