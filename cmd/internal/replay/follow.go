package replay

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

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
	if f, ok := plain.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
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
