package replay

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// withProgress returns the input with its bytes counted.
func (in Input) withProgress(p *progress) Input {
	open := in.Open
	in.Open = func() (io.ReadCloser, error) {
		log, err := open()
		if err != nil {
			return nil, err
		}
		return counted{log, p}, nil
	}
	return in
}

// counted is a log whose bytes are counted.
type counted struct {
	io.ReadCloser
	progress *progress
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.progress.add(n)
	return n, err
}

// progress is a progress bar that is drawn when its speed means something.
type progress struct {
	*progressbar.ProgressBar
	start  time.Time
	unseen atomic.Int64 // bytes that the bar has not counted
}

// add counts bytes. It is safe for concurrent use.
func (p *progress) add(n int) {
	if p.unseen.Add(int64(n)); time.Since(p.start) >= firstTick {
		_ = p.Add64(p.unseen.Swap(0)) // fails when a file has grown
	}
}

// uncounted returns a log without its bar.
func uncounted(log io.ReadCloser) io.ReadCloser {
	if c, ok := log.(counted); ok {
		return c.ReadCloser
	}
	return log
}

const (
	// barInterval is how often the progress bar is drawn.
	barInterval = 100 * time.Millisecond
	// firstTick is when it is drawn first.
	firstTick = time.Second / 2
	// minProgress is the shortest input with a progress bar, in bytes: about a second.
	minProgress = 64 << 20
)

// newProgress returns a progress bar on stderr for an input of size bytes, -1 if the size is
// not known. It returns nil if stderr is not a terminal or the input is short. The bar
// counts bytes as they are read, which may be gzipped, and removes itself at the end.
func newProgress(stderr io.Writer, size int64) *progress {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || size >= 0 && size < minProgress {
		return nil
	}
	bar := progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetDescription("replaying"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(barInterval),
		progressbar.OptionClearOnFinish(),
	)
	return &progress{ProgressBar: bar, start: time.Now()}
}
