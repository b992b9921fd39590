package planted

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

var (
	everything = flag.Bool("all", false, "plant the bugs and run the tests: takes more than an hour")
	only       = flag.String("package", "", "plant only the bugs of this package")
)

// part is a package, and the tests that look for the bugs of its list: arguments of go test, cheap
// tests first.
type part struct {
	name  string
	tests []string
}

func (p part) bugs(t *testing.T) []Bug {
	t.Helper()
	bugs, err := Bugs(strings.ReplaceAll(p.name, "/", "-"))
	if err != nil {
		t.Fatal(err)
	}
	return bugs
}

const (
	manyPrograms = "./fuzz -programs=20000"
	fewPrograms  = "./fuzz -programs=300" // for operators, which are many
	modelChecker = "-test.run=^(TestEveryInterleaving|TestInterleavingsInTinyMaps)$ " +
		"./internal/proof/interleaving -bug=none"
)

var proofs = []string{
	manyPrograms, "./internal/proof/linearizable", "./internal/proof/load",
	"./internal/proof/longrun", modelChecker,
}

var parts = []part{
	{"tb", []string{"./tb", "./tb/mutex", "./tb/cas"}},
	{"lru", append([]string{"./lru", "./tb/cas"}, proofs...)},
	{"tb/cas", append([]string{"./tb/cas"}, proofs...)},
	{"tb/mutex", append([]string{"./tb/mutex", "./tb/cas"}, proofs...)},
	{"rate", []string{"./rate"}},
	{"adapt", []string{"./adapt", "./httplimit"}},
	{"httplimit", []string{
		"./httplimit", "./grpclimit", "-test.run=InRedis|APolicy ./tb/redis", "./cmd/internal/proxy",
	}},
	{"tb/redis", []string{"./tb/redis"}},
}

// otherLists are the lists that other packages plant: the model checker and the tests of tb/redis.
var otherLists = []string{
	"check-keys", "check-charges", "check-reservations", "check-limits", "check-tiers", "script",
}

// TestBugsFitTheCode requires that each bug can be planted in the code as it is.
func TestBugsFitTheCode(t *testing.T) {
	lists := slices.Clone(otherLists)
	for _, p := range parts {
		lists = append(lists, strings.ReplaceAll(p.name, "/", "-"))
	}
	names := map[string]bool{}
	for _, list := range lists {
		bugs, err := Bugs(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bugs {
			if names[b.Name] {
				t.Errorf("%s: two bugs have the name %q", list, b.Name)
			}
			names[b.Name] = true
			b.planted(t, root)
		}
	}
	for _, p := range parts {
		for _, b := range p.bugs(t) {
			if path.Dir(b.File) != p.name {
				t.Errorf("%s: bug %q is in %s", p.name, b.Name, b.File)
			}
			if _, text, wrong := b.planted(t, root); b.inGo() {
				begin := strings.Index(text, b.Old)
				functionAt(t, text, begin).call(t, "")
				functionAt(t, wrong, begin)
			}
		}
	}
	if len(names) < 350 {
		t.Errorf("%d bugs, want at least 350", len(names))
	}
}

// planted returns the name and the text of the bug's file below dir, and the text with the bug.
func (b Bug) planted(t *testing.T, dir string) (name, text, wrong string) {
	t.Helper()
	name = filepath.Join(dir, b.File)
	text = read(t, name)
	wrong, err := b.In(text)
	if err != nil {
		t.Error(err)
	}
	return name, text, wrong
}

func (b Bug) inGo() bool { return path.Ext(b.File) == ".go" }

// TestPlantedBugsAreFound plants one bug after another in a copy of the tree, and runs the tests
// until one fails.
func TestPlantedBugsAreFound(t *testing.T) {
	if !*everything {
		t.Skip("bugs are only planted with -all")
	}
	c := code{dir: copyOfTheTree(t), programs: map[string]string{}, seconds: 60}
	numbers := addAll(t, c.dir)
	for _, p := range parts {
		if *only != "" && *only != p.name {
			continue
		}
		found := map[string]int{} // by the tests that find them
		Find(t, Chosen(p.bugs(t), true), func(t *testing.T, b Bug) string {
			if !b.inGo() {
				name, text, wrong := b.planted(t, c.dir)
				write(t, name, wrong)
				defer write(t, name, text)
				clear(c.programs)
				defer clear(c.programs)
			}
			for _, tests := range p.tests {
				if out, ok := c.run(t, tests, numbers[b.Name]); !ok {
					found[tests]++
					return tests + ": " + failures(out)
				}
			}
			return ""
		})
		t.Logf("%s: found by %v", p.name, found)
	}
}

// code is the code with all bugs.
type code struct {
	dir      string
	programs map[string]string // the test programs by package
	seconds  int               // of processor time that the tests of a package may take
}

// run runs tests with a bug, and reports whether they pass. It leaves out tests whose subject is
// the text of the code. They fail if they take too much processor time or memory, because a bug may
// be a loop that does not end.
func (c *code) run(t *testing.T, tests string, number int) (out string, passed bool) {
	t.Helper()
	var pkg string
	arguments := []string{
		"-c", fmt.Sprintf(`ulimit -t %d -v 8000000; exec "$@"`, c.seconds), "bash", "",
		"-test.short", "-test.failfast", fmt.Sprintf("-test.timeout=%ds", 6*c.seconds),
		"-test.skip=^(TestFastPathIsInlined|TestPlantedBugsAreFound)$",
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
		build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-trimpath",
			"-ldflags=-w", "-o", program, pkg)
		build.Dir = c.dir
		if out, err := build.CombinedOutput(); err != nil && number == 0 {
			return string(out), false // such as an index that a broken constant puts out of range
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
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
