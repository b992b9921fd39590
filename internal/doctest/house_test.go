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

// TestHouseHasArrowsOnlyDown requires that each package has a floor in the drawing of DESIGN.md,
// and imports only packages of floors below. Each file of httplimit and of tb/cas has a room in a
// drawing of its own, and names only what files of its room and of the rooms below declare.
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
	rooms := map[string]map[string]int{"httplimit": drawing(t, 1), "tb/cas": drawing(t, 2)}
	roomOf := func(name string) int {
		return rooms[path.Dir(name)][strings.TrimSuffix(path.Base(name), ".go")]
	}
	inRooms := map[string]*ast.File{} // by name
	declared := map[string]string{}   // names of files, by directory and name
	imports, names := 0, 0
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		from := floorOf(dir)
		if from == 0 {
			t.Errorf("%s has no floor", name)
		}
		for _, i := range file.Imports {
			if dir == "httplimit/policy" && i.Path.Value == `"net/http"` { // a policy is data
				t.Errorf("%s imports net/http", name)
			}
			to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`)+"/", module+"/")
			if !ours {
				continue
			}
			if imports++; floorOf(to) <= from {
				t.Errorf("%s imports %s, which is not on a floor below", name, to)
			}
		}
		if rooms[dir] == nil {
			continue
		}
		if roomOf(name) == 0 {
			t.Errorf("%s has no room", name)
		}
		inRooms[name] = file
		for _, object := range file.Scope.Objects {
			declared[dir+object.Name] = name
		}
	}
	for from, file := range inRooms {
		for _, name := range file.Unresolved {
			to, ours := declared[path.Dir(from)+name.Name]
			if !ours {
				continue
			}
			if names++; roomOf(to) < roomOf(from) {
				t.Errorf("%s names %s, which %s of a room above declares", from, name.Name, to)
			}
		}
	}
	atLeast(t, 100, imports, "imports within the repository")
	atLeast(t, 200, names, "names of other files")
}
