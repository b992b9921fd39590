package testkit

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// Running is a server's command under way.
type Running struct {
	Banner string // its last line begins with Ctrl-C
	Log    *Transcript
	Stop   func() error // stops the command and waits for its end
}

// Run runs a command until the end of the test, and returns when it has printed its banner.
func Run(t *testing.T, command func(ctx context.Context, std cli.IO) error) *Running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, write := io.Pipe()
	r := &Running{Log: NewTranscript()}
	done := make(chan error, 1)
	go func() {
		err := command(ctx, cli.IO{Stdout: write, Stderr: r.Log})
		write.CloseWithError(io.EOF)
		done <- err
	}()
	lines := bufio.NewScanner(stdout)
	for !strings.Contains(r.Banner, "\nCtrl-C") {
		if !lines.Scan() {
			t.Fatalf("the command did not start: %v", <-done)
		}
		r.Banner += lines.Text() + "\n"
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // it ends with the command
	r.Stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}
