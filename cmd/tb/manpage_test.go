package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page has each flag that the help of a command has.
func TestManualPageHasAllFlags(t *testing.T) {
	_, page, _ := tb(t, "", "man")
	sections := make(map[string]string) // by their titles
	for _, section := range strings.Split(page, "\n.SH ") {
		title, content, _ := strings.Cut(section, "\n")
		sections[title] = strings.ReplaceAll(content, `\-`, "-")
	}
	flag := regexp.MustCompile(`(?m)^ +(?:-., +)?(--[a-z0-9[\]-]+)`)
	flags := 0
	for _, command := range []string{"replay", "proxy", "rls", "policy check", "policy explain"} {
		_, help, _ := tb(t, "", append(strings.Fields(command), "--help")...)
		for _, m := range flag.FindAllStringSubmatch(help, -1) {
			flags++
			section := sections["TB "+strings.ToUpper(command)] + sections["OPTIONS"]
			if !strings.Contains(section, `\fB`+m[1]+`\fR`) {
				t.Errorf("the section of tb %s has no %s", command, m[1])
			}
		}
	}
	if flags < 90 || strings.Contains(page, "default is .") || strings.Contains(page, `\fI|`) {
		t.Errorf("%d flags, or one whose default or first choice is empty", flags)
	}
}

// The page has no date, because it is not made on the day of a release.
func TestManualPageIsWellFormed(t *testing.T) {
	_, page, _ := tb(t, "", "man")
	name := filepath.Join(t.TempDir(), "tb.1")
	write(t, name, page)
	for _, args := range [][]string{
		{"mandoc", "-T", "lint", "-W", "warning", name},
		{"man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", name},
	} {
		t.Run(args[0], func(t *testing.T) {
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skip(args[0] + " is not installed")
			}
			var warnings strings.Builder
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Stderr = &warnings
			out, _ := cmd.Output()
			if args[0] == "mandoc" { // prints its warnings
				warnings.Write(out)
			}
			for line := range strings.Lines(warnings.String()) {
				if !strings.Contains(line, "missing date") {
					t.Error(line)
				}
			}
		})
	}
}
