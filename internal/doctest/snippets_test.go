package doctest

import (
	"regexp"
	"strings"
	"testing"
)

// TestSnippetsStandInCode requires that the Go code of a document stands in files that go test
// compiles. For docs/migrate.md that includes the code in its tables, and for docs/hierarchies.md
// the output of its example.
func TestSnippetsStandInCode(t *testing.T) {
	readme, migrate := read(t, "README.md"), read(t, "docs/migrate.md")
	parents := read(t, "docs/hierarchies.md")
	row := regexp.MustCompile(`(?m)^\| .*\|$`)
	span := regexp.MustCompile("`([^`]*[(){.][^`]*)`")
	var cells []string
	for _, m := range row.FindAllString(migrate, -1) {
		for _, s := range span.FindAllStringSubmatch(m, -1) {
			cells = append(cells, s[1])
		}
	}
	for where, snippets := range map[string][]string{
		`^(rate/)?example_test\.go$`:   blocks(readme, "go"),
		`^examples/hierarchy/`:         append(blocks(parents, "go"), blocks(parents, "")...),
		`^benchmarks/compare/migrate/`: append(blocks(migrate, "go"), cells...),
	} {
		var code strings.Builder
		for _, name := range files(t, ".go") {
			if regexp.MustCompile(where).MatchString(name) {
				code.WriteString(words(read(t, name)) + "\n")
			}
		}
		if len(snippets) < 4 {
			t.Errorf("%s: %d snippets, want at least 4", where, len(snippets))
		}
		for _, s := range snippets {
			if !strings.Contains(code.String(), words(strings.TrimPrefix(s, "import "))) {
				t.Errorf("%s does not have:\n%s", where, s)
			}
		}
	}
}
