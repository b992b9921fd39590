package ratelimit_test

import (
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// TestHouseHasArrowsOnlyDown requires that each package has a floor in the drawing of DESIGN.md,
// and imports only packages of floors below.
func TestHouseHasArrowsOnlyDown(t *testing.T) {
	const module = "github.com/seed-181794aa/ratelimit"
	_, section, _ := strings.Cut(read(t, "DESIGN.md"), "\n## The house\n")
	floors := make(map[string]int) // by package, or by prefix and *
	floor := 0
	for line := range strings.Lines(blocks(section, "")[0]) {
		names := strings.Fields(line)
		if !strings.HasPrefix(line, " ") {
			floor, names = floor+1, names[1:]
		}
		for _, name := range names {
			floors[name] = floor
		}
	}
	floorOf := func(dir string) int {
		if f := floors[dir]; f > 0 {
			return f
		}
		for ; dir != "."; dir = path.Dir(dir) {
			if f := floors[dir+"/*"]; f > 0 {
				return f
			}
		}
		return 0
	}
	arrows := 0
	for _, name := range files(t, ".go") {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			continue
		}
		if dir == "." {
			dir = "ratelimit"
		}
		from := floorOf(dir)
		if from == 0 {
			t.Errorf("%s has no floor", dir)
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			to, ours := strings.CutPrefix(imported+"/", module+"/")
			if !ours {
				continue
			}
			if to = strings.TrimSuffix(to, "/"); to == "" {
				to = "ratelimit"
			}
			if arrows++; floorOf(to) <= from {
				t.Errorf("%s imports %s, which is not on a floor below", name, to)
			}
		}
	}
	if arrows < 100 {
		t.Errorf("%d imports within the repository, want at least 100", arrows)
	}
}
