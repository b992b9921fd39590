//go:build unix

package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// An interrupt ends a command whose policy is a named pipe without a writer.
func TestInterruptWhilePolicyIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	log := testkit.File(t, "a.log", validLine)
	for _, args := range [][]string{
		{"replay", "--policy", pipe, log}, {"policy", "check", pipe}, {"policy", "explain", pipe},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, errs strings.Builder
		status := program.Run(ctx, args, cli.IO{Stdout: &out, Stderr: &errs})
		if status != 1 || !strings.Contains(errs.String(), pipe+": interrupted while reading") {
			t.Errorf("%s: status %d, %s", args, status, &errs)
		}
	}
}

// An interrupt ends the example of a copy also while it waits for its input.
func TestInterruptWhileAnExampleReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bytes")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", file,
		"./examples/bytes")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := exec.CommandContext(t.Context(), file)
	stdin, err1 := c.StdinPipe()
	stdout, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	_, err1 = stdin.Write([]byte("x"))
	_, err2 = stdout.Read(make([]byte, 1)) // then it waits for more
	if err := errors.Join(err1, err2, c.Process.Signal(syscall.SIGINT)); err != nil {
		t.Fatal(err)
	}
	if _ = c.Wait(); c.ProcessState.Exited() {
		t.Errorf("%v, want a signal", c.ProcessState)
	}
}
