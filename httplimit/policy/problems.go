package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Problems collects everything that is wrong with a policy. Each problem is the path of a field,
// and what the field must be.
type Problems []error

// Add adds a problem with the field at path. The rest is as in fmt.Sprintf.
func (p *Problems) Add(path Path, format string, args ...any) {
	text := string(path) + " " + fmt.Sprintf(format, args...)
	*p = append(*p, errors.New(strings.TrimPrefix(text, " ")))
}

// Path is where a field is in the document of a policy, such as rules[1].algorithm_config.burst. It
// is "" for the document itself.
type Path string

// Field returns the path of a field of the object at p.
func (p Path) Field(name string) Path {
	switch {
	case !partName.MatchString(name):
		return p + "[" + Path(strconv.Quote(name)) + "]"
	case p == "":
		return Path(name)
	}
	return p + "." + Path(name)
}

// Index returns the path of the element i of the array at p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }
