package httplimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// problems collects everything that is wrong with a policy. Each problem is the path of a field,
// and what the field must be.
type problems []error

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, errors.New(strings.TrimPrefix(path+" "+fmt.Sprintf(format, args...), " ")))
}

func field(path, name string) string {
	switch {
	case !partName.MatchString(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
