package replay

import (
	"errors"
	"fmt"
	"strings"
)

// wantsPicture reports whether the result is drawn.
func (c *Command) wantsPicture() bool { return c.SVG != "" }

// validatePictures returns an error if --svg has a mistake.
func (c *Command) validatePictures() error {
	switch {
	case strings.HasPrefix(c.SVG, "-"):
		return fmt.Errorf("--svg=%s: want the name of a file", c.SVG)
	case c.wantsPicture() && len(c.Sweep.Rates)+len(c.Sweep.Bursts) > 0 && !c.Suggest.isSet():
		return errors.New("want either --svg or --sweep, and not both")
	}
	return nil
}
