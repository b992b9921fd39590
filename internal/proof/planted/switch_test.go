package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// variable is the environment variable with the number of the bug that a program has.
const variable = "PLANTED_BUG"

// selection is a file of each package with bugs.
const selection = `package %s

import (
	"os"
	"strconv"
)

var plantedBug, _ = strconv.Atoi(os.Getenv("` + variable + `"))
`

// addAll plants all bugs in the code below dir at once, so that the tests are compiled once. A
// function with a bug gets a copy that has the bug, and calls it if the bug is selected. It returns
// the numbers that select the bugs.
func addAll(t *testing.T, dir string) map[string]int {
	t.Helper()
	numbers := map[string]int{}
	for _, p := range parts {
		for _, b := range p.bugs(t) {
			number := len(numbers) + 1
			if numbers[b.Name] = number; !b.inGo() {
				continue
			}
			_, text, wrong := b.planted(t, root)
			right := functionAt(t, text, strings.Index(text, b.Old))
			bad := functionAt(t, wrong, strings.Index(text, b.Old))
			copied := fmt.Sprintf("%s_bug%d", right.decl.Name.Name, number)

			name := filepath.Join(dir, b.File)
			header, rest, _ := strings.Cut(read(t, name), right.header)
			call := fmt.Sprintf("\nif plantedBug == %d {\n%s\n}\n", number, right.call(t, copied))
			write(t, name, header+right.header+call+rest+"\n"+bad.renamed(copied)+"\n")
			write(t, filepath.Join(filepath.Dir(name), "plantedbug.go"),
				fmt.Sprintf(selection, right.pkg))
		}
	}
	return numbers
}

// function is a function of a file.
type function struct {
	pkg          string
	decl         *ast.FuncDecl
	text, header string // header is up to the brace of the body
}

// functionAt returns the function at an offset of a file.
func functionAt(t *testing.T, file string, offset int) (f function) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "", file, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p token.Pos) int { return int(p) - 1 }
	for _, d := range parsed.Decls {
		d, ok := d.(*ast.FuncDecl)
		if ok && at(d.Pos()) <= offset && offset < at(d.End()) {
			begin := at(d.Pos())
			return function{
				parsed.Name.Name, d, file[begin:at(d.End())], file[begin : at(d.Body.Lbrace)+1],
			}
		}
	}
	t.Fatalf("no function has this text:\n%s", file[offset:min(len(file), offset+100)])
	return f
}

// renamed returns the text of f with another name.
func (f function) renamed(name string) string {
	at := int(f.decl.Name.Pos() - f.decl.Pos())
	return f.text[:at] + name + f.text[at+len(f.decl.Name.Name):]
}

// call returns a call of a function with the parameters of f, which ends f.
func (f function) call(t *testing.T, name string) string {
	t.Helper()
	names := func(list *ast.FieldList) (all []string) {
		if list == nil {
			return nil
		}
		for _, field := range list.List {
			for _, n := range field.Names {
				all = append(all, n.Name)
			}
			if len(field.Names) == 0 || field.Names[0].Name == "_" {
				t.Fatalf("%s has a parameter without a name", f.header)
			}
		}
		return all
	}
	if receiver := names(f.decl.Recv); receiver != nil {
		name = receiver[0] + "." + name
	}
	if types := names(f.decl.Type.TypeParams); types != nil {
		name += "[" + strings.Join(types, ", ") + "]"
	}
	arguments := names(f.decl.Type.Params)
	if n := len(arguments); n > 0 {
		last := f.decl.Type.Params.List[len(f.decl.Type.Params.List)-1]
		if _, ok := last.Type.(*ast.Ellipsis); ok {
			arguments[n-1] += "..."
		}
	}
	call := name + "(" + strings.Join(arguments, ", ") + ")"
	if f.decl.Type.Results == nil {
		return call + "\nreturn"
	}
	return "return " + call
}
