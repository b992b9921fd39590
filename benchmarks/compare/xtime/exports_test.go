package xtime

import (
	"go/importer"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// exports returns the declarations of the exported identifiers of a package, of its constants with
// their values, and of its types with their exported fields and methods.
func exports(t *testing.T, path string) (list []string) {
	t.Helper()
	p, err := importer.ForCompiler(token.NewFileSet(), "source", nil).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	add := func(of, value string, o types.Object) {
		if o.Exported() {
			text := types.ObjectString(o, (*types.Package).Name)
			text = strings.ReplaceAll(text, "(err error)", "error") // names of results do not count
			list = append(list, of+" "+text+" "+value)
		}
	}
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Const:
			add("", o.Val().ExactString(), o)
		case *types.TypeName:
			for m := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
				add(name, "", m.Obj())
			}
			if s, ok := o.Type().Underlying().(*types.Struct); !ok {
				add(name, "", o)
			} else {
				for f := range s.Fields() {
					add(name, "struct", f)
				}
			}
		default:
			add("", "", o)
		}
	}
	return list
}

// A new version of x/time/rate with another API fails here.
func TestSameExports(t *testing.T) {
	ours := exports(t, "github.com/seed-181794aa/ratelimit/rate")
	theirs := exports(t, "golang.org/x/time/rate")
	if len(theirs) < 28 || !slices.Equal(ours, theirs) {
		t.Errorf("%d and %d identifiers:\n%s\n\nwant\n%s", len(ours), len(theirs),
			strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}
