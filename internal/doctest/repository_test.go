// Package doctest tests what the documents say about the repository: links, snippets, commands and
// the drawing of the house.
package doctest

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
)

var repository = os.DirFS("../..")

// files returns the files of the repository with the given suffix, in all modules, without those
// that are the data of tests.
func files(t *testing.T, suffix string) (names []string) {
	t.Helper()
	err := fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && name != "."
		if d.IsDir() && (hidden || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, suffix) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(repository, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// atLeast requires that a test has found some of what it looks for.
func atLeast(t *testing.T, least, n int, what string) {
	t.Helper()
	if n < least {
		t.Errorf("%d %s, want at least %d", n, what, least)
	}
}

// words returns s with one space between words, so that indentation does not count.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// requireCode requires that a Go file of the repository, which go test compiles, has this text.
func requireCode(t *testing.T, text string) {
	t.Helper()
	once.Do(func() {
		for _, name := range files(t, ".go") {
			code.WriteString(words(read(t, name)) + "\n")
		}
	})
	if !strings.Contains(code.String(), words(text)) {
		t.Errorf("no file has this code:\n%s", text)
	}
}

var (
	once sync.Once
	code strings.Builder // the words of all Go files
)
