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

func TestPictureDoesNotReplaceALog(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, content string
		status        int
	}{
		{"log", validLine, 1}, {"short", "x", 1},
		{"syslog", "<134>1 2015-05-17T10:05:03Z h a p - - x\n", 1},
		{"empty", "", 0}, {"page", "<!doctype html>", 0}, {"picture", "<?xml version=\"1.0\"?>", 0},
	} {
		for _, flag := range []string{"--svg", "--html"} {
			name := filepath.Join(dir, tt.name)
			if err := os.WriteFile(name, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			status, _, stderr := tb(t, validLine, "replay", "--rate=5", "--burst=1", flag, name, "-")
			left, err := os.ReadFile(name)
			kept := err == nil && string(left) == tt.content
			if status != tt.status || kept != (tt.status == 1) ||
				kept != strings.Contains(stderr, tt.name+" exists, and is neither") {
				t.Errorf("%s %s: status %d, kept %v, stderr %q", flag, tt.name, status, kept, stderr)
			}
		}
	}
}

// unread is a standard input that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the log was read")
	return 0, io.EOF
}

func TestDrawingThatCannotBeMadeFailsFirst(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "out")
	for _, flag := range []string{"--svg", "--html"} {
		var out, errs bytes.Buffer
		args := []string{"replay", "--rate=5", "--burst=1", flag, nowhere, "-"}
		status := run(t.Context(), args, cli.IO{Stdin: unread{t}, Stdout: &out, Stderr: &errs})
		if status != 1 || out.Len() > 0 || !strings.Contains(errs.String(), nowhere) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", flag, status, &out, &errs)
		}
	}
}

func TestDrawingThatCannotBeWrittenLeavesTheReport(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no full device: %v", err)
	}
	status, stdout, stderr := tb(t, validLine, "replay", "--rate=5", "--burst=1", "--svg", full, "-")
	if status != 1 || !strings.Contains(stdout, "granted") || !strings.Contains(stderr, full) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// writing is a standard output that calls a function when it is written to.
type writing func()

func (w writing) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

// An interrupt ends the program behind a pipe, too. Then the report kills tb, after the picture.
func TestDrawingIsWrittenBeforeTheReport(t *testing.T) {
	for _, flag := range []string{"--svg", "--html"} {
		name, reports := filepath.Join(t.TempDir(), "out"), 0
		run(t.Context(), []string{"replay", "--rate=5", "--burst=1", flag, name, "-"}, cli.IO{
			Stdin: strings.NewReader(validLine), Stderr: io.Discard, Stdout: writing(func() {
				reports++
				if drawing, err := os.ReadFile(name); len(drawing) == 0 {
					t.Errorf("%s: the report is before the picture: %v", flag, err)
				}
			}),
		})
		if reports == 0 {
			t.Errorf("%s: no report", flag)
		}
	}
}
