package xtime

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// exports returns the exported identifiers of a package with their types, the types of fields and
// methods included.
func exports(t *testing.T, path string) []string {
	t.Helper()
	p, err := importer.ForCompiler(token.NewFileSet(), "source", nil).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	add := func(parts ...string) { list = append(list, strings.Join(parts, " ")) }
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch object := object.(type) {
		case *types.Const:
			add("const", name, typeOf(object), object.Val().ExactString())
			continue
		case *types.Func:
			add("func", name, typeOf(object))
			continue
		}
		add("type", name)
		for m := range types.NewMethodSet(types.NewPointer(object.Type())).Methods() {
			if m.Obj().Exported() {
				add("method", name, m.Obj().Name(), typeOf(m.Obj()))
			}
		}
		if s, ok := object.Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if f.Exported() {
					add("field", name, f.Name(), typeOf(f))
				}
			}
		}
	}
	return list
}

// typeOf returns the type of an object, without the names of parameters.
func typeOf(o types.Object) string {
	list := func(vars *types.Tuple) (s []string) {
		for v := range vars.Variables() {
			s = append(s, typeOf(v))
		}
		return s
	}
	if f, ok := o.Type().(*types.Signature); ok {
		return fmt.Sprint(list(f.Params()), list(f.Results()))
	}
	return types.TypeString(o.Type(), (*types.Package).Name)
}

// A new version of x/time/rate with another API fails here.
func TestSameExports(t *testing.T) {
	ours := exports(t, "github.com/seed-181794aa/ratelimit/rate")
	theirs := exports(t, "golang.org/x/time/rate")
	if len(theirs) < 30 {
		t.Errorf("%d identifiers, want at least 30", len(theirs))
	}
	for _, name := range theirs {
		if !slices.Contains(ours, name) {
			t.Errorf("missing: %s", name)
		}
	}
	for _, name := range ours {
		if !slices.Contains(theirs, name) {
			t.Errorf("not in x/time: %s", name)
		}
	}
}
