package replay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/schollz/progressbar/v3"
)

func TestNoProgressBarWithoutATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, stderr := range []io.Writer{io.Discard, f} {
		for _, size := range []int64{-1, 1, 1 << 40} {
			if newProgress(stderr, size) != nil {
				t.Errorf("a bar for %d bytes on %T", size, stderr)
			}
		}
	}
}

func TestProgressCountsWhatIsRead(t *testing.T) {
	log := strings.Repeat(line("a", 1, 1), 1000)
	bar := progressbar.NewOptions64(1<<20, progressbar.OptionSetWriter(io.Discard))
	rep := replay(t, options(t, "1", 2), input("a.log", log).withProgress(bar)).Report
	if got := bar.State().CurrentNum; rep.Requests != 1000 || got != int64(len(log)) {
		t.Errorf("%d requests, %d bytes counted of %d", rep.Requests, got, len(log))
	}
}

func TestInputsKnowTheirLength(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	for _, file := range []string{name, other} {
		if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		names []string
		size  int64
	}{
		{[]string{name, other}, 10},
		{[]string{name, "-"}, -1},
		{[]string{"-", name}, -1},
	} {
		list, size, err := findInputs(tt.names, nil)
		if err != nil || size != tt.size || len(list) != len(tt.names) {
			t.Errorf("%q: %d inputs, %d bytes, %v; want %d",
				tt.names, len(list), size, err, tt.size)
		}
	}
}

func TestFileNamedTwiceIsOneInput(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "a.log"), filepath.Join(dir, "link.log")
	err := os.WriteFile(name, []byte("12345"), 0o600)
	if err = errors.Join(err, os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	names := []string{"-", name, dir + "/./a.log", link, dir + "/*.log", "-", "-"}
	list, _, err := findInputs(names, nil)
	if err != nil || len(list) != 2 || list[0].Name != "stdin" || list[1].Name != name {
		t.Errorf("%d inputs, %v; want stdin and a.log", len(list), err)
	}
	if _, size, _ := findInputs([]string{name, link}, nil); size != 5 {
		t.Errorf("%d bytes, want 5", size)
	}
}

func TestDirectoryIsAnError(t *testing.T) {
	dir := t.TempDir()
	want := dir + ": is a directory: want files, such as '" + filepath.Join(dir, "*") + "'"
	list, _, err := findInputs([]string{dir}, nil)
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
		list, size, err := findInputs([]string{filepath.Join(dir, tt.pattern)}, nil)
		var names []string
		for _, in := range list {
			names = append(names, filepath.Base(in.Name))
		}
		if got := strings.Join(names, " "); got != tt.want || err != nil || size != int64(5*len(list)) {
			t.Errorf("%s: got %s, %d bytes, %v; want %s", tt.pattern, got, size, err, tt.want)
		}
	}
	for pattern, want := range map[string]error{"*.zst": os.ErrNotExist, "none": os.ErrNotExist,
		"[": filepath.ErrBadPattern} {
		name := filepath.Join(dir, pattern)
		if _, _, err := findInputs([]string{name}, nil); !errors.Is(err, want) ||
			!strings.Contains(err.Error(), pattern) {
			t.Errorf("%s: error %v, want %v", pattern, err, want)
		}
	}
}
