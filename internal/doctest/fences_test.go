package doctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// judges have the tool of each language. A language without a judge is an error.
var judges = map[string]func(*testing.T, fence){
	"":          judgeOutput,
	"diff":      func(*testing.T, fence) {},
	"caddyfile": readBy("docs/caddy.md"), // TestAllExamplesRun of caddy, which is outside of go.work
	"go":        judgeGo,
	"json":      judgeJSON,
	"yaml": func(t *testing.T, f fence) { // limits of tb-rls
		f.run(t, f.dir, "tb-rls", "--check", "--config", f.write(t, "limits.yaml", f.text))
	},
	"sh": judgeShell,
}

// TestFencedBlocks gives each fenced block of each document to the tool that its readers use.
func TestFencedBlocks(t *testing.T) {
	build := exec.Command("go", "build", "-o", t.TempDir(), "./cmd/tb", "./cmd/tb-rls")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", build.Args[3]+":"+os.Getenv("PATH"))
	counts := map[string]int{}
	for _, name := range files(t, ".md") {
		policy := "" // the policy that a command of the document reads
		for _, f := range fences(read(t, name)) {
			counts[f.language]++
			if f.language == "json" {
				policy = f.text
			}
			t.Run(fmt.Sprintf("%s:%d", name, f.line), func(t *testing.T) {
				f.dir, f.document = t.TempDir(), name
				f.write(t, "policy.json", policy)
				judge, ok := judges[f.language]
				if !ok {
					t.Fatalf("no tool for the language %q", f.language)
				}
				judge(t, f)
			})
		}
	}
	for language, least := range map[string]int{"go": 20, "json": 12, "yaml": 1, "sh": 1} {
		atLeast(t, least, counts[language], "blocks of "+language)
	}
}

// judgeGo runs a program, which ends with what it prints, and finds a snippet in the code of the
// repository, where go test compiles it.
func judgeGo(t *testing.T, f fence) {
	if strings.HasPrefix(f.text, "package ") {
		_, want, _ := strings.Cut(f.text, "\n// Output: ")
		if got := f.run(t, "../..", "go", "run", f.write(t, "main.go", f.text)); got != want {
			t.Errorf("the program prints %q, want %q", got, want)
		}
	} else {
		requireCode(t, strings.TrimPrefix(f.text, "import "))
	}
}

// judgeOutput finds the output of examples/hierarchy in its test. Others are drawings, or outputs
// that the tests of their programs read.
func judgeOutput(t *testing.T, f fence) {
	if f.document == "docs/hierarchies.md" {
		requireCode(t, f.text)
	}
}

// judgeJSON checks a policy, or a handler of Caddy.
func judgeJSON(t *testing.T, f fence) {
	if strings.Contains(f.text, `"handler":`) {
		readBy("docs/caddy.md")(t, f)
	} else {
		f.run(t, f.dir, "tb", "policy", "check", "policy.json")
	}
}

// readBy is the judge of blocks that a test of another module reads, in this document only.
func readBy(document string) func(*testing.T, fence) {
	return func(t *testing.T, f fence) {
		if f.document != document {
			t.Errorf("no test reads blocks of %s in this document", f.language)
		}
	}
}

// judgeShell runs commands beside a log and the last policy of the document above them.
func judgeShell(t *testing.T, f fence) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	log := strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&log, "192.0.2.%d - - [01/Jul/2026:%02d:00:00 +0000] \"GET /a HTTP/1.1\" 200 9\n",
			i%9, i/9)
	}
	f.write(t, "access.log", log.String())
	f.run(t, f.dir, "bash", "-euc", f.text)
}

// TestTablesStandInCode requires that the code in the tables of docs/migrate.md stands in a file.
func TestTablesStandInCode(t *testing.T) {
	cell, cells := regexp.MustCompile("`([^`]*[(){.][^`]*)`"), 0
	for line := range strings.Lines(read(t, "docs/migrate.md")) {
		if strings.HasPrefix(line, "| ") {
			for _, m := range cell.FindAllStringSubmatch(line, -1) {
				requireCode(t, m[1])
				cells++
			}
		}
	}
	atLeast(t, 20, cells, "cells with code")
}

// fence is a fenced block, which begins at a line of its document.
type fence struct {
	language, text string
	line           int
	document, dir  string
}

var fenced = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

func fences(document string) (found []fence) {
	for _, m := range fenced.FindAllStringSubmatchIndex(document, -1) {
		found = append(found, fence{
			language: document[m[2]:m[3]],
			text:     document[m[4]:m[5]],
			line:     1 + strings.Count(document[:m[0]], "\n"),
		})
	}
	return found
}

func (f fence) write(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(f.dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func (f fence) run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s\n%s", strings.Join(command, " "), err, out, f.text)
	}
	return string(out)
}
