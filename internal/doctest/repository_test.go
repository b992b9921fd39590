// Package doctest tests what the documents say about the repository: links, snippets, commands and
// the drawing of the house.
package doctest

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

var repository = os.DirFS("../..")

// files returns the files of the repository with the given suffix, in all modules.
func files(t *testing.T, suffix string) (names []string) {
	t.Helper()
	err := fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
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

// documents returns the documents that are for readers.
func documents(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range files(t, ".md") {
		if !strings.Contains(name, "/testdata/") {
			names = append(names, name)
		}
	}
	return names
}

// blocks returns the code blocks of a document in the given language.
func blocks(document, language string) (found []string) {
	for _, f := range fences(document) {
		if f.language == language {
			found = append(found, f.text)
		}
	}
	return found
}

// words returns s with one space between words, so that indentation does not count.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }
