package replay

import (
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
