package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

func TestPageDoesNotReplaceALog(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page")
	tb(t, validLine, "replay", "--sample", "--html", page)
	own, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, content string
		status        int
	}{
		{"log", validLine, 1}, {"short", "x", 1},
		{"syslog", "<134>1 2015-05-17T10:05:03Z h a p - - x\n", 1},
		{"empty", "", 0}, {"page", string(own), 0}, {"other", "<!doctype html>\n<p>", 1},
	} {
		name := filepath.Join(dir, tt.name)
		if err := os.WriteFile(name, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := tb(t, validLine, "replay", "--rate=5", "--burst=1", "--html", name, "-")
		left, err := os.ReadFile(name)
		kept := err == nil && string(left) == tt.content
		if status != tt.status || kept != (tt.status == 1) ||
			kept != strings.Contains(stderr, tt.name+" exists, and is not a page of a replay") {
			t.Errorf("%s: status %d, kept %v, stderr %q", tt.name, status, kept, stderr)
		}
	}
}

// unread is a standard input that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the log was read")
	return 0, io.EOF
}

func TestPageThatCannotBeMadeFailsFirst(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "out")
	var out, errs bytes.Buffer
	args := []string{"replay", "--rate=5", "--burst=1", "--html", nowhere, "-"}
	status := program.Run(t.Context(), args, cli.IO{Stdin: unread{t}, Stdout: &out, Stderr: &errs})
	if status != 1 || out.Len() > 0 || !strings.Contains(errs.String(), nowhere) {
		t.Errorf("status %d, stdout %q, stderr %q", status, &out, &errs)
	}
}

func TestPageThatCannotBeWrittenLeavesTheReport(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no full device: %v", err)
	}
	status, stdout, stderr := tb(t, validLine, "replay", "--rate=5", "--burst=1", "--html", full, "-")
	if status != 1 || !strings.Contains(stdout, "It refuses ") || !strings.Contains(stderr, full) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// writing is a standard output that calls a function when it is written to.
type writing func()

func (w writing) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

// An interrupt ends the program behind a pipe, too. Then the report kills tb, after the page.
func TestPageIsWrittenBeforeTheReport(t *testing.T) {
	name, reports := filepath.Join(t.TempDir(), "out"), 0
	program.Run(t.Context(), []string{"replay", "--rate=5", "--burst=1", "--html", name, "-"}, cli.IO{
		Stdin: strings.NewReader(validLine), Stderr: io.Discard, Stdout: writing(func() {
			reports++
			if page, err := os.ReadFile(name); len(page) == 0 {
				t.Errorf("the report is before the page: %v", err)
			}
		}),
	})
	if reports == 0 {
		t.Error("no report")
	}
}
