package replay

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Input is one log. Its Name appears in reports and messages.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// findInputs returns the named files. The name "-" is stdin. A name with *, ? or [ that is not a
// file is a pattern, and stands for the files that match it. A file that is named twice is one
// input. findInputs fails if there is no such file, before a long replay begins.
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
		files, err := expand(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(found, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
				continue
			}
			found = append(found, info)
			list = append(list, Input{file, func() (io.ReadCloser, error) { return openLog(file) }})
		}
	}
	return list, nil
}

// openLog opens a file. A directory is an error.
func openLog(name string) (io.ReadCloser, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory: want files, such as '%s'", name,
			filepath.Join(name, "*"))
	}
	return os.Open(name)
}

// expand returns the files that a pattern matches, or the name if it is not a pattern.
func expand(name string) ([]string, error) {
	if _, err := os.Lstat(name); err == nil || !strings.ContainsAny(name, "*?[") {
		return []string{name}, nil
	}
	files, err := filepath.Glob(name)
	if err == nil && len(files) == 0 {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return files, nil
}

// open opens the input unless ctx ends first: a named pipe waits for its writer. A file
// that is opened too late stays open until the process ends.
func (in Input) open(ctx context.Context) (io.ReadCloser, error) {
	type result struct {
		log io.ReadCloser
		err error
	}
	done := make(chan result, 1)
	go func() {
		log, err := in.Open()
		done <- result{log, err}
	}()
	select {
	case r := <-done:
		return r.log, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
