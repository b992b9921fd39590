package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

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
