package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// picture is a file that shows the result, and the function that writes it.
type picture struct {
	file  *os.File
	write func(*Result, io.Writer) error
}

// wantsPicture reports whether the result is drawn.
func (c *Command) wantsPicture() bool { return c.SVG != "" || c.HTML != "" }

// validatePictures returns an error if --svg or --html has a mistake.
func (c *Command) validatePictures() error {
	switch {
	case strings.HasPrefix(c.SVG, "-"):
		return fmt.Errorf("--svg=%s: want the name of a file", c.SVG)
	case strings.HasPrefix(c.HTML, "-"):
		return fmt.Errorf("--html=%s: want the name of a file", c.HTML)
	case c.SVG != "" && filepath.Clean(c.SVG) == filepath.Clean(c.HTML):
		return errors.New("want different files for --svg and --html")
	case c.wantsPicture() && len(c.Sweep.Rates)+len(c.Sweep.Bursts) > 0 && !c.Suggest.isSet():
		return errors.New("want either --svg or --html, or --sweep, and not both")
	}
	return nil
}

// checkReplaceable returns an error for a regular file that is not empty and does not look like a
// picture or a page. It may be a log whose name stands behind --svg by mistake.
func checkReplaceable(name string) error {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil // os.Create returns what is wrong
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	begin := make([]byte, len("<?xml"))
	n, _ := io.ReadFull(file, begin)
	switch string(begin[:n]) {
	case "", "<?xml", "<!doc":
		return file.Close()
	}
	err = fmt.Errorf("%s exists, and is neither a picture nor a page", name)
	return errors.Join(err, file.Close())
}

// createPictures creates the files of --svg and --html.
func (c *Command) createPictures() (all []picture, err error) {
	for _, p := range []struct {
		name  string
		write func(*Result, io.Writer) error
	}{
		{c.SVG, (*Result).WriteSVG},
		{c.HTML, (*Result).WriteHTML},
	} {
		if p.name == "" {
			continue
		}
		if err := checkReplaceable(p.name); err != nil {
			return nil, err
		}
		file, err := os.Create(p.name)
		if err != nil {
			return nil, err
		}
		all = append(all, picture{file, p.write})
	}
	return all, nil
}
