package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// changed is what a page says of later commits, which need not generate it again.
var changed = regexp.MustCompile(`(had|had not|may have) changed since`)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if strings.HasSuffix(name, ".svg") && runtime.GOARCH != "amd64" {
			continue // elsewhere the last digit of a coordinate may differ
		}
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(changed.ReplaceAll(got, nil), changed.ReplaceAll(want, nil)) {
			t.Errorf("%s differs from what is generated: run scripts/report", name)
		}
	}
}

func TestDocumentsShowEveryChart(t *testing.T) {
	var shown []string
	for _, name := range []string{document, readme} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\((\S+\.svg)\)`).FindAllSubmatch(text, -1) {
			shown = append(shown, string(m[1]))
		}
	}
	var made []string
	for _, c := range charts {
		made = append(made, c.path())
	}
	slices.Sort(shown)
	slices.Sort(made)
	if !slices.Equal(shown, made) {
		t.Errorf("the documents show %v, want %v", shown, made)
	}
}

func TestChangesSince(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, "lru", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "lru"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("map.go", "package lru\n")
	write("map_test.go", "package lru\n")
	git("init", "--quiet")
	git("add", ".")
	git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "first")
	since := func(commit, want string) {
		t.Helper()
		if got := changesSince(dir, commit); !strings.HasSuffix(got, "` "+want+" changed since.") {
			t.Errorf("since %s: %q, want %q", commit, got, want)
		}
	}
	since("HEAD", "had not")
	write("map_test.go", "package lru // a test\n")
	since("HEAD", "had not")
	write("map.go", "package lru // a change\n")
	since("HEAD", "had")
	since("0123abc-dirty", "may have")
}

func TestFillReplacesTables(t *testing.T) {
	inProcess, err := read(filepath.Join(root, resultsDir, bench))
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]*results{bench: inProcess}
	text, err := fill([]byte("a\n<!-- generated: machine -->\nold\n<!-- end -->\nb\n"), raw)
	if err != nil || !bytes.Contains(text, []byte("-->\nMeasured on ")) ||
		bytes.Contains(text, []byte("old")) {
		t.Errorf("fill: %s, %v", text, err)
	}
	if _, err := fill([]byte("<!-- generated: other -->\n<!-- end -->\n"), raw); err == nil {
		t.Error("fill accepts a table that does not exist")
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{47.04e-9, "sec/op", "47.0"},
		{540.6e-9, "sec/op", "541"},
		{0.0123, "p99-sec", "12,300,000"},
		{122.7, "B/key", "123"},
		{0, "allocs/op", "0"},
		{0.0324, "trips/op", "0.0324"},
		{40.553, "trips/op", "40.6"},
	} {
		if got := format(c.v, c.unit); got != c.want {
			t.Errorf("format(%v, %s) = %s, want %s", c.v, c.unit, got, c.want)
		}
	}
}
