package replay

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// barInterval is how often the progress bar is drawn.
const barInterval = 100 * time.Millisecond

// inputs returns the named files, "-" being stdin, and their length in bytes, -1 if
// that is not known. It fails if one does not exist, before a long replay begins.
func inputs(names []string, stdin io.Reader) (list []Input, size int64, err error) {
	for _, name := range names {
		if name == "-" {
			size = -1
			list = append(list, Input{"stdin", func() (io.ReadCloser, error) {
				return io.NopCloser(stdin), nil
			}})
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		if size >= 0 && info.Mode().IsRegular() {
			size += info.Size()
		} else {
			size = -1
		}
		list = append(list, Input{name, func() (io.ReadCloser, error) { return os.Open(name) }})
	}
	return list, size, nil
}

// open opens the input unless ctx ends first: a named pipe waits for its writer. Then the
// file that comes too late stays open, which does not matter to a program that ends.
func (in Input) open(ctx context.Context) (io.ReadCloser, error) {
	type opened struct {
		log io.ReadCloser
		err error
	}
	done := make(chan opened, 1)
	go func() {
		log, err := in.Open()
		done <- opened{log, err}
	}()
	select {
	case o := <-done:
		return o.log, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// watched returns the input with its bytes counted by the bar.
func (in Input) watched(bar *progressbar.ProgressBar) Input {
	open := in.Open
	in.Open = func() (io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r, bar), r}, nil
	}
	return in
}
