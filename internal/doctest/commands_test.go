package doctest

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	testCommand = regexp.MustCompile("go test (?:'[^'\n]*'|[^`#\n'])*")
	argument    = regexp.MustCompile(`'[^']*'|\S+`)
	testName    = regexp.MustCompile(`(?m)^func (?:Test|Benchmark|Fuzz|Example)\w*\(`)
)

// TestCommandsNameWhatExists requires that each name after -run and -bench in a go test command of
// a document is there in the package, which may be in a module that the text names, such as cmd.
func TestCommandsNameWhatExists(t *testing.T) {
	names := map[string]string{} // of tests and benchmarks, by directory
	for _, name := range files(t, "_test.go") {
		for dir := path.Dir(name); dir != ""; _, dir, _ = strings.Cut(dir, "/") {
			names[dir] += strings.Join(testName.FindAllString(read(t, name), -1), "\n")
		}
	}
	checked := 0
	for _, name := range files(t, ".md") {
		text := strings.ReplaceAll(read(t, name), "\\\n", " ")
		for _, command := range testCommand.FindAllString(text, -1) {
			dir, pattern, before := "", "", ""
			for _, a := range argument.FindAllString(command, -1) {
				switch {
				case strings.HasPrefix(a, "./") && !strings.Contains(a, "..."):
					dir = strings.Trim(a[2:], ".,;:)")
				case (before == "-run" || before == "-bench") && a != "'^$'":
					pattern, _, _ = strings.Cut(strings.Trim(a, "'"), "/")
				}
				before = a
			}
			for part := range strings.SplitSeq(pattern, "|") {
				if dir == "" || strings.ContainsAny(pattern, "()") {
					break
				}
				if checked++; !regexp.MustCompile(part).MatchString(names[dir]) {
					t.Errorf("%s: %q: no %s in %s", name, command, part, dir)
				}
			}
		}
	}
	atLeast(t, 20, checked, "names")
}

// TestTasksAreScripts requires that each task of mise.toml has the name of the script that it runs.
func TestTasksAreScripts(t *testing.T) {
	_, tasks, _ := strings.Cut(read(t, "mise.toml"), "\n[tasks]\n")
	for line := range strings.Lines(tasks) {
		name, _, _ := strings.Cut(line, " = ")
		if script := "scripts/" + name; !strings.Contains(line, ` = { run = "`+script+`", `) {
			t.Errorf("%s is no task that runs %s", line, script)
		} else if _, err := fs.Stat(repository, script); err != nil {
			t.Error(err)
		}
	}
}
