//go:build unix

package main

import (
	"context"
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
