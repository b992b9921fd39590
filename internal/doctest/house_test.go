package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// drawing returns the floors of what is in a drawing of the house. The first one is the highest.
func drawing(t *testing.T, i int) map[string]int {
	t.Helper()
	_, section, _ := strings.Cut(read(t, "DESIGN.md"), "\n## The house\n")
	floors, floor := map[string]int{}, 0
	for line := range strings.Lines(fences(section)[i].text) {
		names := strings.Fields(line)
		if !strings.HasPrefix(line, " ") {
			floor, names = floor+1, names[1:]
		}
		for _, name := range names {
			floors[name] = floor
		}
	}
	return floors
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHouseHasArrowsOnlyDown requires that each package has a floor in the drawing of DESIGN.md,
// and imports only packages of floors below. A policy is data, so its package does not know net/http.
func TestHouseHasArrowsOnlyDown(t *testing.T) {
	const module = "github.com/seed-181794aa/ratelimit"
	floors := drawing(t, 0) // by package, or by prefix and *
	floorOf := func(dir string) int {
		if dir = path.Clean(dir); dir == "." {
			return floors["ratelimit"]
		}
		f := floors[dir]
		for ; f == 0 && dir != "."; dir = path.Dir(dir) {
			f = floors[dir+"/*"]
		}
		return f
	}
	arrows := 0
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		from := floorOf(path.Dir(name))
		if from == 0 {
			t.Errorf("%s has no floor", name)
		}
		for _, i := range parse(t, name).Imports {
			if path.Dir(name) == "httplimit/policy" && i.Path.Value == `"net/http"` {
				t.Errorf("%s imports net/http", name)
			}
			to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`)+"/", module+"/")
			if !ours {
				continue
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

// TestRoomsHaveArrowsOnlyDown requires that each file of httplimit and of tb/cas is in a room of
// its drawing, and names only what files of its room and of the rooms below declare.
func TestRoomsHaveArrowsOnlyDown(t *testing.T) {
	for i, dir := range []string{"httplimit", "tb/cas"} {
		t.Run(dir, func(t *testing.T) { roomsHaveArrowsOnlyDown(t, dir, drawing(t, 1+i)) })
	}
}

func roomsHaveArrowsOnlyDown(t *testing.T, dir string, rooms map[string]int) {
	type part struct {
		name string
		room int
		file *ast.File
	}
	var parts []part
	declared := map[string]part{} // by name
	for _, name := range files(t, ".go") {
		if path.Dir(name) != dir || strings.HasSuffix(name, "_test.go") {
			continue
		}
		p := part{name, rooms[strings.TrimSuffix(path.Base(name), ".go")], parse(t, name)}
		if p.room == 0 {
			t.Errorf("%s has no room", name)
		}
		parts = append(parts, p)
		for _, object := range p.file.Scope.Objects {
			declared[object.Name] = p
		}
	}
	arrows := 0
	for _, p := range parts {
		for _, name := range p.file.Unresolved {
			to, ours := declared[name.Name]
			if !ours {
				continue
			}
			if arrows++; to.room < p.room {
				t.Errorf("%s names %s, which %s of a room above declares", p.name, name.Name, to.name)
			}
		}
	}
	if arrows < 100 {
		t.Errorf("%d names of other files, want at least 100", arrows)
	}
}
