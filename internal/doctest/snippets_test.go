package doctest

import (
	"regexp"
	"strings"
	"testing"
)

// TestTextStandsInCode requires that the code in the tables of docs/migrate.md, and the output in
// docs/hierarchies.md, stand in files that go test compiles.
func TestTextStandsInCode(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| .*\|$`)
	span := regexp.MustCompile("`([^`]*[(){.][^`]*)`")
	var cells []string
	for _, m := range row.FindAllString(read(t, "docs/migrate.md"), -1) {
		for _, s := range span.FindAllStringSubmatch(m, -1) {
			cells = append(cells, s[1])
		}
	}
	for where, texts := range map[string][]string{
		`^examples/hierarchy/`:         blocks(read(t, "docs/hierarchies.md"), ""),
		`^benchmarks/compare/migrate/`: cells,
	} {
		var code strings.Builder
		for _, name := range files(t, ".go") {
			if regexp.MustCompile(where).MatchString(name) {
				code.WriteString(words(read(t, name)) + "\n")
			}
		}
		if len(texts) == 0 {
			t.Errorf("%s: nothing to find", where)
		}
		for _, s := range texts {
			if !strings.Contains(code.String(), words(s)) {
				t.Errorf("%s does not have:\n%s", where, s)
			}
		}
	}
}
