package planted

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os/exec"
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
		return &n.Op, n.OpPos
	case *ast.AssignStmt:
		return &n.Tok, n.TokPos
	case *ast.IncDecStmt:
		return &n.Tok, n.TokPos
	case *ast.BranchStmt:
		return &n.Tok, n.TokPos
	}
	return nil, 0
}

// mutant is a function or a declaration with another operator.
type mutant struct {
	number   int
	name     string
	file     string
	function *ast.FuncDecl   // nil for another declaration
	decision *ast.BinaryExpr // if its result is a bool
	text     string          // of the decision, of the copy of the function, or of the file
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
			ast.Inspect(decl, func(n ast.Node) bool {
				op, at := operatorOf(n)
				if op == nil {
					return true
				}
				was, place := *op, files.Position(at)
				for _, other := range replacements[was] {
					*op = other
					m := &mutant{number: len(all) + 1, file: path.Join(pkg, filepath.Base(name))}
					m.name = fmt.Sprintf("%s:%d:%d %s to %s", m.file, place.Line, place.Column, was, other)
					m.function, _ = decl.(*ast.FuncDecl)
					m.decision, _ = n.(*ast.BinaryExpr)
					if m.function == nil || !decides(was) {
						m.decision = nil
					}
					m.text = m.print(t, files, file)
					all = append(all, m)
				}
				*op = was
				return true
			})
		}
	}
	return all
}

// print returns the text of m, whose operator is in the syntax of the file.
func (m *mutant) print(t *testing.T, files *token.FileSet, file *ast.File) string {
	t.Helper()
	var node any = file
	switch {
	case m.decision != nil:
		node = m.decision
	case m.function != nil:
		f := *m.function
		f.Doc = nil
		f.Name = ast.NewIdent(m.copyName())
		node = &f
	}
	var b strings.Builder
	if err := printer.Fprint(&b, files, node); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// copyName returns the name of the copy of m's function.
func (m *mutant) copyName() string {
	return fmt.Sprintf("%s_mutant%d", m.function.Name.Name, m.number)
}

// edit puts texts before and after a part of a file. Without the text after, the part is dropped.
type edit struct {
	begin, end    int
	before, after string
}

// decides reports whether the result of an operator is a bool.
func decides(op token.Token) bool {
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.LAND, token.LOR:
		return true
	}
	return false
}

// plantAll writes the files of a package with all mutants of functions. The variable of the
// environment selects one. An expression that decides has its mutants beside it. Other mutants are
// copies of their functions. It returns the lines of the copies by file.
func plantAll(t *testing.T, dir, pkg string, all []*mutant) map[string][]*mutant {
	t.Helper()
	byFile := map[string][]*mutant{}
	for _, m := range all {
		if m.function != nil {
			byFile[m.file] = append(byFile[m.file], m)
		}
	}
	lines := map[string][]*mutant{} // which mutant each line is of
	for name, mutants := range byFile {
		text := read(t, filepath.Join(root, name))
		var edits []edit
		copies := map[*ast.FuncDecl][]*mutant{}
		decisions := map[*ast.BinaryExpr][]*mutant{}
		for _, m := range mutants {
			if m.decision != nil {
				decisions[m.decision] = append(decisions[m.decision], m)
			} else {
				copies[m.function] = append(copies[m.function], m)
			}
		}
		for f, mutants := range copies {
			edits = append(edits, dispatch(f, mutants)...)
		}
		for e, mutants := range decisions {
			var before, after strings.Builder
			before.WriteString("(")
			for _, m := range mutants {
				fmt.Fprintf(&before, "plantedMutant != %d && ", m.number)
				fmt.Fprintf(&after, " || plantedMutant == %d && (%s)", m.number, m.text)
			}
			before.WriteString("(")
			edits = append(edits, edit{int(e.Pos()) - 1, int(e.End()) - 1,
				before.String(), ")" + after.String() + ")"})
		}
		slices.SortFunc(edits, func(a, b edit) int {
			return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
		})
		edited := apply(text, 0, len(text), &edits) + "\n"
		lines[name] = make([]*mutant, strings.Count(edited, "\n"))
		for _, m := range mutants {
			if m.decision == nil {
				edited += m.text + "\n"
				for range strings.Count(m.text, "\n") + 1 {
					lines[name] = append(lines[name], m)
				}
			}
		}
		write(t, filepath.Join(dir, name), edited)
	}
	write(t, filepath.Join(dir, pkg, "plantedmutant.go"), fmt.Sprintf(selection, path.Base(pkg)))
	return lines
}

// apply returns a part of a text with the edits in it, which it takes from the front of edits.
func apply(text string, begin, end int, edits *[]edit) string {
	var b strings.Builder
	for len(*edits) > 0 && (*edits)[0].begin < end {
		e := (*edits)[0]
		*edits = (*edits)[1:]
		b.WriteString(text[begin:e.begin] + e.before)
		if e.after != "" {
			b.WriteString(apply(text, e.begin, e.end, edits) + e.after)
		}
		begin = e.end
	}
	return b.String() + text[begin:end]
}

// dispatch returns the edits with which a function calls its copies.
func dispatch(f *ast.FuncDecl, mutants []*mutant) (edits []edit) {
	unnamed := 0
	names := func(list *ast.FieldList) (all []string) {
		if list == nil {
			return nil
		}
		for _, field := range list.List {
			if len(field.Names) == 0 {
				unnamed++
				name := fmt.Sprint("unnamed", unnamed)
				begin := int(field.Type.Pos()) - 1
				edits = append(edits, edit{begin, begin, name + " ", ""})
				all = append(all, name)
			}
			for _, n := range field.Names {
				name := n.Name
				if name == "_" {
					unnamed++
					name = fmt.Sprint("unnamed", unnamed)
					edits = append(edits, edit{int(n.Pos()) - 1, int(n.End()) - 1, name, ""})
				}
				all = append(all, name)
			}
		}
		return all
	}
	receiver, types := names(f.Recv), names(f.Type.TypeParams)
	arguments := names(f.Type.Params)
	if n := len(arguments); n > 0 {
		last := f.Type.Params.List[len(f.Type.Params.List)-1]
		if _, ok := last.Type.(*ast.Ellipsis); ok {
			arguments[n-1] += "..."
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, " if plantedMutant >= %d && plantedMutant <= %d { switch plantedMutant {",
		mutants[0].number, mutants[len(mutants)-1].number)
	for _, m := range mutants {
		call := m.copyName()
		if receiver != nil {
			call = receiver[0] + "." + call
		}
		if types != nil {
			call += "[" + strings.Join(types, ", ") + "]"
		}
		call += "(" + strings.Join(arguments, ", ") + ")"
		if f.Type.Results == nil {
			fmt.Fprintf(&b, "case %d: %s; return;", m.number, call)
		} else {
			fmt.Fprintf(&b, "case %d: return %s;", m.number, call)
		}
	}
	b.WriteString("}};")
	begin := int(f.Body.Lbrace)
	return append(edits, edit{begin, begin, b.String(), ""})
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
	all := mutantsOf(t, p.name)
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
		case invalid[m] || !regexp.MustCompile(*named).MatchString(m.name):
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
		if out, ok := single.build(t, p.name); ok {
			clear(single.programs)
			try(single, m, 0)
		} else {
			t.Logf("does not compile: %s: %s", m.name, lastLine(out))
		}
		write(t, name, text)
	}
}

var compileError = regexp.MustCompile(`(?m)^([\w/]+\.go):(\d+):\d+: `)

// plantValid plants all mutants that compile, and returns the others.
func (c *code) plantValid(t *testing.T, pkg string, all []*mutant) (invalid map[*mutant]bool) {
	t.Helper()
	invalid = map[*mutant]bool{}
	for {
		valid := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return invalid[m] })
		lines := plantAll(t, c.dir, pkg, valid)
		out, ok := c.build(t, pkg)
		if ok {
			return invalid
		}
		before := len(invalid)
		for _, e := range compileError.FindAllStringSubmatch(out, -1) {
			line, _ := strconv.Atoi(e[2])
			if of := lines[e[1]]; line <= len(of) && of[line-1] != nil {
				invalid[of[line-1]] = true
			}
		}
		if len(invalid) == before {
			t.Fatalf("%s", out)
		}
	}
}

func (c *code) build(t *testing.T, pkg string) (out string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-gcflags=-e", "./"+pkg)
	cmd.Dir = c.dir
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
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
