package replay

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// minProgress is how long an input is at least, in bytes, to deserve a progress bar:
// about a second's worth.
const minProgress = 64 << 20

// newProgress returns a bar on stderr for an input of size bytes, -1 if that is not
// known: then it only shows that something happens. It is nil, for no bar, if stderr is no
// terminal or the input is short. The bar counts bytes as they are read, gzipped ones too,
// and removes itself at the end.
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
