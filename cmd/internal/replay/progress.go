package replay

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	// barInterval is how often the progress bar is drawn.
	barInterval = 100 * time.Millisecond
	// minProgress is the shortest input with a progress bar, in bytes: about a second.
	minProgress = 64 << 20
)

// newProgress returns a progress bar on stderr for an input of size bytes, -1 if the size is
// not known. It returns nil if stderr is not a terminal or the input is short. The bar
// counts bytes as they are read, which may be gzipped, and removes itself at the end.
func newProgress(stderr io.Writer, size int64) *progressbar.ProgressBar {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || size >= 0 && size < minProgress {
		return nil
	}
	return progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetDescription("replaying"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(barInterval),
		progressbar.OptionClearOnFinish(),
	)
}

// counted is a log whose bytes are counted.
type counted struct {
	io.ReadCloser
	bar *progressbar.ProgressBar
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_ = c.bar.Add(n) // fails when a file has grown
	return n, err
}

// withProgress returns the input with its bytes counted.
func (in Input) withProgress(bar *progressbar.ProgressBar) Input {
	open := in.Open
	in.Open = func() (io.ReadCloser, error) {
		log, err := open()
		if err != nil {
			return nil, err
		}
		return counted{log, bar}, nil
	}
	return in
}

// uncounted returns a log without its bar.
func uncounted(log io.ReadCloser) io.ReadCloser {
	if c, ok := log.(counted); ok {
		return c.ReadCloser
	}
	return log
}
