package replay

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileNamedTwiceIsOneInput(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "a.log"), filepath.Join(dir, "link.log")
	err := os.WriteFile(name, []byte("12345"), 0o600)
	if err = errors.Join(err, os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	names := []string{"-", name, dir + "/./a.log", link, dir + "/*.log", "-", "-"}
	list, err := findInputs(names, nil)
	if err != nil || len(list) != 2 || list[0].Name != "stdin" || list[1].Name != name {
		t.Errorf("%d inputs, %v; want stdin and a.log", len(list), err)
	}
}

func TestDirectoryIsAnError(t *testing.T) {
	dir := t.TempDir()
	want := dir + ": is a directory: want files, such as '" + filepath.Join(dir, "*") + "'"
	list, err := findInputs([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = list[0].Open(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestPatternsStandForFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"access.log", "access.log.1", "access.log.2.gz", "other", "a[1]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		pattern string
		want    string
	}{
		{"access.log*", "access.log access.log.1 access.log.2.gz"},
		{"access.log.?", "access.log.1"},
		{"[ao]*", "a[1] access.log access.log.1 access.log.2.gz other"},
		{"a[1]", "a[1]"}, // a file of that name comes first
		{"other", "other"},
	} {
		list, err := findInputs([]string{filepath.Join(dir, tt.pattern)}, nil)
		var names []string
		for _, in := range list {
			names = append(names, filepath.Base(in.Name))
		}
		if got := strings.Join(names, " "); got != tt.want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", tt.pattern, got, err, tt.want)
		}
	}
	for pattern, want := range map[string]error{"*.zst": os.ErrNotExist, "none": os.ErrNotExist,
		"[": filepath.ErrBadPattern} {
		name := filepath.Join(dir, pattern)
		if _, err := findInputs([]string{name}, nil); !errors.Is(err, want) ||
			!strings.Contains(err.Error(), pattern) {
			t.Errorf("%s: error %v, want %v", pattern, err, want)
		}
	}
}
