package planted

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

var (
	everything = flag.Bool("all", false, "plant all bugs that a proof finds, not only a few")
	only       = flag.String("package", "", "break the operators of this package")
)

// part is a package, and the tests that look for its mutants: arguments of go test, cheap tests
// first.
type part struct {
	name  string
	tests []string
}

const (
	manyPrograms = "./fuzz -programs=20000"
	fewPrograms  = "./fuzz -programs=300" // for operators, which are many
	modelChecker = "-test.run=^(TestEveryInterleaving|TestInterleavingsInTinyMaps)$ " +
		"./proof/interleaving -bug=none"
)

var proofs = []string{
	manyPrograms, "./proof/linearizable", "./proof/load",
	"./proof/longrun", modelChecker,
}

var parts = []part{
	{"tb", []string{"./tb", "./tb/mutex", "./tb/cas"}},
	{"lru", append([]string{"./lru", "./tb/cas"}, proofs...)},
	{"tb/cas", append([]string{"./tb/cas", "./"}, proofs...)}, // and the root
	{"tb/mutex", append([]string{"./tb/mutex", "./tb/cas"}, proofs...)},
	{"rate", []string{"./rate", "./benchmarks/compare/xtime"}},
	{"adapt", []string{"./adapt", "./httplimit"}},
	{"httplimit", []string{
		"./httplimit", "./grpclimit", "-test.run=InRedis|APolicy ./tb/redis", "./cmd/internal/proxy",
	}},
	{"httplimit/policy", []string{"./httplimit/policy", "./httplimit"}},
	{"outbound", []string{"./outbound"}},
	{"tb/redis", []string{"./tb/redis"}},
}

// every returns the bugs of all lists.
func every(t *testing.T) []Bug {
	t.Helper()
	all, err := Bugs("*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBugsFitTheCode requires that each bug can be planted in the code as it is.
func TestBugsFitTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, b := range every(t) {
		if names[b.Name] {
			t.Errorf("two bugs have the name %q", b.Name)
		}
		names[b.Name] = true
		if _, err := b.In(read(t, filepath.Join(root, b.File))); err != nil {
			t.Error(err)
		}
	}
	if len(names) < 220 {
		t.Errorf("%d bugs, want at least 220", len(names))
	}
}

// TestProofsFindPlantedBugs requires that tests fail on a build with a bug, if the list names them.
// It shows that the judges of random calls can say no.
func TestProofsFindPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("each bug is a build of a proof")
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bugs := slices.DeleteFunc(every(t), func(b Bug) bool { return b.Tests == nil })
	Find(t, Chosen(bugs, *everything), func(t *testing.T, b Bug) string {
		dir := t.TempDir()
		name := filepath.Join(top, b.File)
		wrong, err := b.In(read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "wrong.go"), wrong)
		overlay := filepath.Join(dir, "overlay.json")
		write(t, overlay,
			fmt.Sprintf(`{"Replace": {%q: %q}}`, name, filepath.Join(dir, "wrong.go")))
		var found []string
		for _, test := range b.Tests {
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1", "-short",
				"-failfast", "-vet=off", "-overlay", overlay}, strings.Fields(test)...)...)
			cmd.Dir = top
			out, err := cmd.CombinedOutput()
			failed := failures(string(out))
			if err == nil || failed == "" {
				t.Logf("%s: %v\n%s", test, err, out)
				return ""
			}
			found = append(found, test+": "+failed)
		}
		return strings.Join(found, "; ")
	})
}

// TestPublicBugsAreDocumented requires that docs/bugs.md has each public bug, with its test.
func TestPublicBugsAreDocumented(t *testing.T) {
	document := read(t, filepath.Join(root, "docs/bugs.md"))
	bugs, err := Bugs("public")
	if err != nil || len(bugs) != strings.Count(document, "` |\n") {
		t.Errorf("%d bugs, %v, want one for each row", len(bugs), err)
	}
	for _, b := range bugs {
		_, test, _ := strings.Cut(b.Tests[0], "Contract/")
		test, _, _ = strings.Cut(test, "$")
		row := regexp.MustCompile(`(?m)^\| ` + b.Name + ` \|.* \| .` + test + ". \\|$")
		if !row.MatchString(document) {
			t.Errorf("no row is like %v", row)
		}
	}
}

// code is a copy of the tree, with all mutants of a package.
type code struct {
	dir      string
	programs map[string]string // the test programs by package
	seconds  int               // of processor time that the tests of a package may take
}

// run runs tests with a mutant, and reports whether they pass. It leaves out tests whose subject is
// the text of the code, or what the compiler makes of it. The others fail if they take too much
// processor time or memory, because a bug may be a loop that does not end.
func (c *code) run(t *testing.T, tests string, number int) (out string, passed bool) {
	t.Helper()
	var pkg string
	arguments := []string{
		"-c", fmt.Sprintf(`ulimit -t %d -v 8000000; exec "$@"`, c.seconds), "bash", "",
		"-test.short", "-test.failfast", fmt.Sprintf("-test.timeout=%ds", 6*c.seconds),
		`-test.skip=^(TestFastPathIsInlined|TestSameExports|TestAllocations\w*)$`,
	}
	for _, argument := range strings.Fields(tests) {
		if strings.HasPrefix(argument, "./") {
			pkg = argument
		} else {
			arguments = append(arguments, argument)
		}
	}
	if c.programs[pkg] == "" {
		program := filepath.Join(c.dir, strings.ReplaceAll(pkg[2:], "/", "-")+".test")
		out, ok := c.build(t, pkg, "test", "-c", "-vet=off", "-ldflags=-w", "-o", program)
		if !ok && number == 0 {
			return out, false // such as an index that a broken constant puts out of range
		} else if !ok {
			t.Fatal(out)
		}
		c.programs[pkg] = program
	}
	arguments[3] = c.programs[pkg]
	cmd := exec.CommandContext(t.Context(), "bash", arguments...)
	cmd.Dir = filepath.Join(c.dir, pkg)
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(number))
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// build builds a package in its module.
func (c *code) build(t *testing.T, pkg string, arguments ...string) (out string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append(arguments, "-trimpath", ".")...)
	cmd.Dir = filepath.Join(c.dir, pkg)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

var failure = regexp.MustCompile(`(?m)^(--- FAIL: \w+|panic: .*|fatal error: .*)`)

// failures returns the names of the tests that have failed.
func failures(out string) string { return strings.Join(failure.FindAllString(out, 3), "; ") }

// copyOfTheTree returns a directory with the files of the working tree.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(),
		"git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	names, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil { // not deleted
			write(t, filepath.Join(dir, name), read(t, filepath.Join(root, name)))
		}
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
