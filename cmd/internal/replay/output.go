package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
)

// refreshInterval is how often a replay that follows standard input reports.
const refreshInterval = 2 * time.Second

// refresh prints the report on a log that is followed: in a terminal over the report before, and
// otherwise after it.
func (c *Command) refresh(rep *Report, stdout io.Writer) error {
	before, plain := "\n", stdout
	if w, ok := stdout.(printable.Writer); ok {
		plain = w.Writer // which does not escape controls
	}
	if isTerminal(plain) {
		const home, clear = "\x1b[H", "\x1b[2J\x1b[3J"
		before = home + clear
	}
	if !c.JSON {
		if _, err := io.WriteString(plain, before); err != nil {
			return err
		}
	}
	return c.print(rep, stdout)
}

// isTerminal reports whether w is a terminal, or another device that shows characters.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// print writes the report as text or JSON.
func (c *Command) print(rep *Report, stdout io.Writer) error {
	if !c.JSON {
		return rep.WriteText(stdout)
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}

// createHTML creates the file of --html, and returns nil without the flag. It refuses to replace a
// file that is not empty and not a page, which may be a log whose name stands behind --html by
// mistake.
func (c *Command) createHTML() (*os.File, error) {
	if c.HTML == "" {
		return nil, nil
	}
	if info, err := os.Stat(c.HTML); err == nil && info.Mode().IsRegular() {
		file, err := os.Open(c.HTML)
		if err != nil {
			return nil, err
		}
		begin, err := io.ReadAll(io.LimitReader(file, int64(len("<!doc"))))
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		if len(begin) > 0 && string(begin) != "<!doc" {
			return nil, fmt.Errorf("%s exists, and is not a page", c.HTML)
		}
	}
	return os.Create(c.HTML)
}
