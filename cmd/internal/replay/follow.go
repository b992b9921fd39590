package replay

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
)

const (
	// refreshInterval is how often a replay that follows a log reports.
	refreshInterval = 2 * time.Second
	// pollInterval is how often it looks for more at the end of a file.
	pollInterval = 250 * time.Millisecond
)

// followed is a file that has more lines later. It goes on with the file that has the name now if
// the file was rotated, and from the start if the file was truncated, as tail -F does.
type followed struct {
	name   string
	file   *os.File
	closed chan struct{}
}

// follow opens a file to follow it.
func follow(name string) (io.ReadCloser, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &followed{name, file, make(chan struct{})}, nil
}

// Read waits for more at the end of the file, until Close.
func (f *followed) Read(p []byte) (int, error) {
	for {
		n, err := f.file.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if f.restart() {
			return copy(p, "\n"), nil // the last line before need not end
		}
		select {
		case <-f.closed:
			return 0, errors.Join(io.EOF, f.file.Close())
		case <-time.After(pollInterval):
		}
	}
}

// Close ends a Read, which closes the file.
func (f *followed) Close() error {
	close(f.closed)
	return nil
}

// restart goes to the start of a file that was rotated or truncated, and reports whether it was.
// Between the two steps of a rotation the name has no file.
func (f *followed) restart() bool {
	named, err := os.Stat(f.name)
	if err != nil {
		return false
	}
	open, err := f.file.Stat()
	if err == nil && os.SameFile(named, open) {
		at, err := f.file.Seek(0, io.SeekCurrent)
		if err != nil || named.Size() >= at {
			return false
		}
		_, err = f.file.Seek(0, io.SeekStart)
		return err == nil
	}
	next, err := os.Open(f.name)
	if err != nil {
		return false
	}
	_ = f.file.Close() // it was read to its end
	f.file = next
	return true
}

// refresh prints the report on a log that is followed: in a terminal over the report before, and
// otherwise after it.
func (c *Command) refresh(rep *Report, stdout io.Writer) error {
	before, plain := "\n", stdout
	if w, ok := stdout.(printable.Writer); ok {
		plain = w.Writer // which does not escape controls
	}
	if f, ok := plain.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		const home, clear = "\x1b[H", "\x1b[2J\x1b[3J"
		before = home + clear
	}
	if !c.JSON && !c.saysNothing(rep) {
		if _, err := io.WriteString(plain, before); err != nil {
			return err
		}
	}
	return c.print(rep, stdout)
}
