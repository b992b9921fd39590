package replay

import (
	"io"
	"os"
	"slices"
)

// Input is one log. Its Name appears in reports and messages.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// findInputs returns the named files. The name "-" is stdin. A file that is named twice is
// one input. findInputs fails if there is no such file, before a long replay begins.
func findInputs(names []string, stdin io.Reader) (list []Input, err error) {
	var found []os.FileInfo
	for i, name := range names {
		if name == "-" {
			if !slices.Contains(names[:i], name) {
				list = append(list, Input{"stdin", func() (io.ReadCloser, error) {
					return io.NopCloser(stdin), nil
				}})
			}
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(found, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
			continue
		}
		found = append(found, info)
		list = append(list, Input{name, func() (io.ReadCloser, error) { return os.Open(name) }})
	}
	return list, nil
}
