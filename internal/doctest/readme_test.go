package doctest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const readmeFile = "README.md"

// TestReadmeSnippetsAreRun requires that each Go snippet of the README is part of an example
// that go test compiles and runs, an import of this file of examples, or the test of a contract.
func TestReadmeSnippetsAreRun(t *testing.T) {
	const name = "example_test.go"
	source := read(t, name)
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	code := []string{words(read(t, "tb/tbtest/tbtest_test.go"))}
	for _, i := range file.Imports {
		code = append(code, "import "+i.Path.Value)
	}
	for _, e := range doc.Examples(file) {
		if e.Output == "" {
			t.Errorf("Example%s is not run, because it has no output", e.Name)
		}
		body := e.Code.(*ast.BlockStmt)
		code = append(code, words(source[body.Lbrace:body.Rbrace-1]))
	}
	snippets := blocks(read(t, readmeFile), "go")
	if len(snippets) < 4 {
		t.Errorf("%d Go snippets, want at least 4", len(snippets))
	}
next:
	for _, s := range snippets {
		for _, c := range code {
			if strings.Contains(c, words(s)) {
				continue next
			}
		}
		t.Errorf("no example has this code:\n%s", s)
	}
}

// TestSnippetsStandInExamples requires that the snippets of two documents stand in the packages
// that they follow: code of docs/hierarchies.md and its output, and code of docs/migrate.md, also
// in its tables.
func TestSnippetsStandInExamples(t *testing.T) {
	hierarchies, migrate := read(t, "docs/hierarchies.md"), read(t, "docs/migrate.md")
	code := blocks(migrate, "go")
	row := regexp.MustCompile(`(?m)^\| .*\|$`)
	span := regexp.MustCompile("`([^`]*[(){.][^`]*)`")
	for _, m := range row.FindAllString(migrate, -1) {
		for _, s := range span.FindAllStringSubmatch(m, -1) {
			code = append(code, s[1])
		}
	}
	for dir, snippets := range map[string][]string{
		"examples/hierarchy/": append(blocks(hierarchies, "go"), blocks(hierarchies, "")...),
		"examples/migrate/":   code,
	} {
		var text strings.Builder
		for _, name := range files(t, ".go") {
			if strings.HasPrefix(name, dir) {
				text.WriteString(words(read(t, name)) + "\n")
			}
		}
		if len(snippets) < 5 {
			t.Errorf("%s: %d snippets, want at least 5", dir, len(snippets))
		}
		for _, s := range snippets {
			if !strings.Contains(text.String(), words(s)) {
				t.Errorf("%s does not have:\n%s", dir, s)
			}
		}
	}
}

// TestReadmeCommandsAreInTheGate requires that .ci/run runs the two commands that the README
// gives for a machine with only Go.
func TestReadmeCommandsAreInTheGate(t *testing.T) {
	gate, shell := read(t, ".ci/run"), strings.Join(blocks(read(t, readmeFile), ""), "")
	for _, command := range []string{
		"go run ./cmd/tb replay --sample --rate 5 --burst 10", "go test work",
	} {
		step := `(?m)^(\t|step "[^"]*" )` + regexp.QuoteMeta(command) + `\b`
		if !regexp.MustCompile(step).MatchString(gate) {
			t.Errorf(".ci/run does not run %q", command)
		}
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(command) + `\b`).MatchString(shell) {
			t.Errorf("no command block of the README has %q", command)
		}
	}
}

func TestReadmeLinesFitAScreen(t *testing.T) {
	const most = 120
	for i, line := range strings.Split(read(t, readmeFile), "\n") {
		if n := utf8.RuneCountInString(line); n > most {
			t.Errorf("line %d has %d columns, want at most %d", i+1, n, most)
		}
	}
}
