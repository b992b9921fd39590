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

// TestFencedBlocks gives each fenced block of each document to the tool that its readers use.
func TestFencedBlocks(t *testing.T) {
	bin := t.TempDir()
	fence{}.run(t, "../..", "go", "build", "-o", bin, "./cmd/tb", "./cmd/tb-rls")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
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
				f.judge(t)
			})
		}
	}
	for language, least := range map[string]int{"go": 20, "json": 12, "yaml": 1, "sh": 1} {
		atLeast(t, least, counts[language], "blocks of "+language)
	}
}

// judge gives a block to the tool of its language. A language without one is an error.
func (f fence) judge(t *testing.T) {
	isProgram, isCaddy := strings.HasPrefix(f.text, "package "), strings.Contains(f.text, `"handler":`)
	switch {
	case f.language == "caddyfile" || f.language == "json" && isCaddy:
		if f.document != "docs/caddy.md" { // where TestAllExamplesRun of another module reads it
			t.Errorf("no test reads blocks of %s in this document", f.language)
		}
	case f.language == "go" && isProgram: // it ends with what it prints
		_, want, _ := strings.Cut(f.text, "\n// Output: ")
		if got := f.run(t, "../..", "go", "run", f.write(t, "main.go", f.text)); got != want {
			t.Errorf("the program prints %q, want %q", got, want)
		}
	case f.language == "go": // go test compiles it in a file of the repository
		requireCode(t, strings.TrimPrefix(f.text, "import "))
	case f.document == "docs/hierarchies.md" && f.language == "": // the test of its example has it
		requireCode(t, f.text)
	case f.language == "" || f.language == "diff": // drawings, and outputs that other tests read
	case f.language == "json":
		f.run(t, f.dir, "tb", "policy", "check", "policy.json")
	case f.language == "yaml":
		f.run(t, f.dir, "tb-rls", "--check", "--config", f.write(t, "limits.yaml", f.text))
	case f.language == "sh": // beside a log and the last policy of the document
		if _, err := exec.LookPath("bash"); err != nil {
			t.Skip("bash is not installed")
		}
		var log []byte
		for i := range 200 {
			const line = "192.0.2.%d - - [01/Jul/2026:%02d:00:00 +0000] \"GET /a HTTP/1.1\" 200 9\n"
			log = fmt.Appendf(log, line, i%9, i/9)
		}
		f.write(t, "access.log", string(log))
		f.run(t, f.dir, "bash", "-euc", f.text)
	default:
		t.Errorf("no tool for the language %q", f.language)
	}
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
