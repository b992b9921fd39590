package planted

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	operators = flag.Bool("operators", false,
		"break one operator of -package after another and run the tests: takes many minutes")
	deep = flag.Bool("deep", false, "try the operators with the model checker and many programs, too")
)

// variable is the environment variable with the number of the mutant that a program has.
const variable = "PLANTED_MUTANT"

// selection is a file of the package with mutants.
const selection = `package %s

import (
	"os"
	"strconv"
)

var plantedMutant, _ = strconv.Atoi(os.Getenv("` + variable + `"))
`

// replacements are the operators that take the place of another, as in gremlins v0.6.0.
var replacements = map[token.Token][]token.Token{
	token.ADD: {token.SUB},
	token.SUB: {token.ADD},
	token.MUL: {token.QUO},
	token.QUO: {token.MUL},
	token.REM: {token.MUL},

	token.AND:     {token.OR},
	token.OR:      {token.AND},
	token.XOR:     {token.AND},
	token.AND_NOT: {token.AND},
	token.SHL:     {token.SHR},
	token.SHR:     {token.SHL},

	token.ADD_ASSIGN: {token.SUB_ASSIGN, token.ASSIGN},
	token.SUB_ASSIGN: {token.ADD_ASSIGN, token.ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN, token.ASSIGN},
	token.QUO_ASSIGN: {token.MUL_ASSIGN, token.ASSIGN},
	token.REM_ASSIGN: {token.ASSIGN},

	token.AND_ASSIGN:     {token.OR_ASSIGN, token.ASSIGN},
	token.OR_ASSIGN:      {token.AND_ASSIGN, token.ASSIGN},
	token.XOR_ASSIGN:     {token.AND_ASSIGN, token.ASSIGN},
	token.AND_NOT_ASSIGN: {token.AND_ASSIGN, token.ASSIGN},
	token.SHL_ASSIGN:     {token.SHR_ASSIGN, token.ASSIGN},
	token.SHR_ASSIGN:     {token.SHL_ASSIGN, token.ASSIGN},

	token.EQL:  {token.NEQ},
	token.NEQ:  {token.EQL},
	token.LSS:  {token.LEQ, token.GEQ},
	token.LEQ:  {token.LSS, token.GTR},
	token.GTR:  {token.GEQ, token.LEQ},
	token.GEQ:  {token.GTR, token.LSS},
	token.LAND: {token.LOR},
	token.LOR:  {token.LAND},

	token.INC:      {token.DEC},
	token.DEC:      {token.INC},
	token.BREAK:    {token.CONTINUE},
	token.CONTINUE: {token.BREAK},
}

// operatorOf returns where the operator of n is, or nil.
func operatorOf(n ast.Node) (*token.Token, token.Pos) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return &n.Op, n.OpPos
	case *ast.UnaryExpr:
		if n.Op != token.AND { // an address
			return &n.Op, n.OpPos
		}
	case *ast.AssignStmt:
		return &n.Tok, n.TokPos
	case *ast.IncDecStmt:
		return &n.Tok, n.TokPos
	case *ast.BranchStmt:
		return &n.Tok, n.TokPos
	}
	return nil, 0
}

// mutant is a file of which one operator is another.
type mutant struct {
	number   int // among those that are planted, from 1 on
	name     string
	file     string
	function *ast.FuncDecl // whose body has the operator; nil if none has
	text     string        // of the body of the function, or of the file
}

// mutantsOf returns the mutants of a package, in the order of its files.
func mutantsOf(t *testing.T, pkg string) (all []*mutant) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "", read(t, name), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			function, _ := decl.(*ast.FuncDecl)
			ast.Inspect(decl, func(n ast.Node) bool {
				op, at := operatorOf(n)
				if op == nil {
					return true
				}
				was, place := *op, files.Position(at)
				for _, other := range replacements[was] {
					*op = other
					m := &mutant{file: path.Join(pkg, filepath.Base(name))}
					m.name = fmt.Sprintf("%s:%d:%d %s to %s", m.file, place.Line, place.Column, was, other)
					var changed ast.Node = file
					if function != nil && at > function.Body.Pos() { // and not in its types
						m.function, changed = function, function.Body
					}
					var text strings.Builder
					if err := printer.Fprint(&text, files, changed); err != nil {
						t.Fatal(err)
					}
					m.text = text.String()
					all = append(all, m)
				}
				*op = was
				return true
			})
		}
	}
	return all
}

// plantAll writes the files of a package with all valid mutants of functions. A function begins
// with the bodies of its mutants. The variable of the environment selects one. The compiler takes
// each for a file with the number of the mutant.
func plantAll(t *testing.T, dir, pkg string, all []*mutant, invalid map[*mutant]bool) {
	t.Helper()
	byFile := map[string][]*mutant{}
	for _, m := range all {
		byFile[m.file] = append(byFile[m.file], m)
	}
	for name, mutants := range byFile { // also one whose mutants turn out to be invalid
		mutants = slices.DeleteFunc(mutants, func(m *mutant) bool {
			return m.function == nil || invalid[m]
		})
		text := read(t, filepath.Join(root, name))
		var b strings.Builder
		done := 0
		for i, m := range mutants {
			f := m.function
			if i == 0 || f != mutants[i-1].function {
				brace := int(f.Body.Lbrace)
				b.WriteString(text[done:brace] + "switch plantedMutant {\n")
				done = brace
			}
			fmt.Fprintf(&b, "case %d:\n//line mutant%[1]d:1\n%s\n", m.number, m.text)
			if f.Type.Results == nil {
				b.WriteString("return\n")
			} else { // the body of a mutant may end, with a break in place of a continue
				b.WriteString("panic(\"no result\")\n")
			}
			if i+1 == len(mutants) || f != mutants[i+1].function {
				b.WriteString("}\n")
			}
		}
		write(t, filepath.Join(dir, name), b.String()+text[done:])
	}
	write(t, filepath.Join(dir, pkg, "plantedmutant.go"), fmt.Sprintf(selection, path.Base(pkg)))
}

// TestOperators breaks one operator of a package after another, and runs the tests until one fails.
// Mutants of functions are compiled at once. The others, of constants, are compiled one by one.
func TestOperators(t *testing.T) {
	if !*operators {
		t.Skip("operators are only broken with -operators")
	}
	p := part{name: *only, tests: []string{"./" + *only}}
	if i := slices.IndexFunc(parts, func(p part) bool { return p.name == *only }); i >= 0 {
		p = parts[i]
	}
	chosen := regexp.MustCompile(*named)
	all := slices.DeleteFunc(mutantsOf(t, p.name), func(m *mutant) bool {
		return !chosen.MatchString(m.name)
	})
	for i, m := range all {
		m.number = i + 1
	}
	seconds := 20
	if *deep {
		seconds = 60
	}
	c := &code{dir: copyOfTheTree(t), programs: map[string]string{}, seconds: seconds}
	invalid := c.plantValid(t, p.name, all)
	tests := c.inOrder(t, p.tests)
	t.Logf("%d mutants, %d do not compile; the tests are %q", len(all), len(invalid), tests)

	try := func(c *code, m *mutant, number int) {
		for _, s := range tests {
			if out, ok := c.run(t, s, number); !ok {
				t.Logf("killed: %s: %s: %s", m.name, strings.Fields(s)[0], failures(out))
				return
			}
		}
		t.Logf("LIVES: %s", m.name)
	}
	queue := make(chan *mutant)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for m := range queue {
				try(c, m, m.number)
			}
		})
	}
	var constants []*mutant
	for _, m := range all {
		switch {
		case invalid[m]:
		case m.function == nil:
			constants = append(constants, m)
		default:
			queue <- m
		}
	}
	close(queue)
	group.Wait()

	single := &code{dir: copyOfTheTree(t), programs: map[string]string{}, seconds: seconds}
	for _, m := range constants {
		name := filepath.Join(single.dir, m.file)
		text := read(t, name)
		write(t, name, m.text)
		if out, ok := single.build(t, p.name, "build", "-o", os.DevNull); ok {
			clear(single.programs)
			try(single, m, 0)
		} else {
			t.Logf("does not compile: %s: %s", m.name, lastLine(out))
		}
		write(t, name, text)
	}
}

var compileError = regexp.MustCompile(`\bmutant(\d+):\d+: `)

// plantValid plants all mutants that compile, and returns the others.
func (c *code) plantValid(t *testing.T, pkg string, all []*mutant) (invalid map[*mutant]bool) {
	t.Helper()
	invalid = map[*mutant]bool{}
	for {
		plantAll(t, c.dir, pkg, all, invalid)
		out, ok := c.build(t, pkg, "build", "-gcflags=-e", "-o", os.DevNull)
		if ok {
			return invalid
		}
		before := len(invalid)
		for _, e := range compileError.FindAllStringSubmatch(out, -1) {
			number, _ := strconv.Atoi(e[1])
			invalid[all[number-1]] = true
		}
		if len(invalid) == before {
			t.Fatalf("%s", out)
		}
	}
}

// inOrder runs the tests without a mutant, and returns them with the quick ones first. Of the tests
// of the package itself, these are the ones that take an eighth of the time together. Random
// programs of fuzz come next, fewer than for planted bugs. Without -deep, the model checker is left
// out.
func (c *code) inOrder(t *testing.T, tests []string) (order []string) {
	t.Helper()
	for i, s := range tests {
		switch {
		case *deep:
		case s == modelChecker:
			continue
		case s == manyPrograms:
			s = fewPrograms
		}
		out, ok := c.run(t, s+" -test.v", 0)
		if !ok {
			t.Fatalf("without a mutant: %s", out)
		}
		switch {
		case i == 0:
			quick, slow := bySpeed(out)
			order = append(order, s+" -test.run=^("+strings.Join(quick, "|")+")$",
				s+" -test.run=^("+strings.Join(slow, "|")+")$")
		case s == fewPrograms:
			order = slices.Insert(order, 1, s)
		default:
			order = append(order, s)
		}
	}
	return order
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((.*)s\)$`)

// bySpeed returns the names of the quick tests and of the slow ones, from the output of a run.
func bySpeed(out string) (quick, slow []string) {
	all := passed.FindAllStringSubmatch(out, -1)
	seconds := func(of []string) float64 {
		n, _ := strconv.ParseFloat(of[2], 64)
		return n
	}
	total := 0.0
	for _, of := range all {
		total += seconds(of)
	}
	slices.SortFunc(all, func(a, b []string) int { return cmp.Compare(seconds(a), seconds(b)) })
	sum := 0.0
	for _, of := range all {
		if sum += seconds(of); sum < total/8 {
			quick = append(quick, of[1])
		} else {
			slow = append(slow, of[1])
		}
	}
	return quick, slow
}

func lastLine(out string) string {
	out = strings.TrimSpace(out)
	return out[strings.LastIndexByte(out, '\n')+1:]
}
