package migrate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentIsCompiled requires that the code of docs/migrate.md stands in the tests of this
// package, which compile it: each Go block, and each piece of code in a table.
func TestDocumentIsCompiled(t *testing.T) {
	document, err := os.ReadFile("../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests string
	names, _ := filepath.Glob("*_test.go")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests += words(string(text))
	}
	var code []string
	row := regexp.MustCompile(`(?m)^\| .*\|$`)
	span := regexp.MustCompile("`([^`]*[(){.][^`]*)`")
	for _, m := range row.FindAllString(string(document), -1) {
		for _, s := range span.FindAllStringSubmatch(m, -1) {
			code = append(code, s[1])
		}
	}
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	for _, m := range block.FindAllStringSubmatch(string(document), -1) {
		code = append(code, m[1])
	}
	if len(code) < 50 {
		t.Errorf("%d pieces of code, want at least 50", len(code))
	}
	for _, c := range code {
		if !strings.Contains(tests, words(c)) {
			t.Errorf("no test has this code:\n%s", c)
		}
	}
}

// words returns s with one space between words, so that indentation does not count.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
