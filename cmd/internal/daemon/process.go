package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
)

// Process is what a server has of its process.
type Process struct {
	Log       *slog.Logger
	Throttled *slog.Logger     // for what clients can cause
	Stdout    io.Writer        // never blocks
	Hangups   <-chan os.Signal // SIGHUP

	banner, lines *Writer
}

// NewProcess returns a process that writes in the background. It must be closed.
func NewProcess(stdout, stderr io.Writer, logFormat string) *Process {
	p := &Process{banner: NewWriter(stdout, nil), Hangups: CatchHangups()}
	p.Log, p.lines = NewLog(stderr, logFormat)
	p.Stdout, p.Throttled = p.banner, Throttled(p.Log)
	return p
}

// Close waits a bounded time until everything is written.
func (p *Process) Close() {
	p.banner.Close()
	p.lines.Close()
}

// LostLines returns how many lines of the log were dropped.
func (p *Process) LostLines() uint64 { return p.lines.Dropped() }

// InOrder runs the steps of a server until one fails, and returns its error.
func InOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Background runs tasks beside the requests, which go on for a while after the end of ctx. The
// returned function ends the context of the tasks and waits for them.
func Background(ctx context.Context, tasks ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, task := range tasks {
		running.Go(func() { task(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// Listen opens a port at the address in a flag.
func Listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (use port 0 for any free port)", flag, err)
	}
	return l, nil
}

// LogRejected logs that a text does not come into force, and each of its problems.
func LogRejected(log *slog.Logger, what, why string, problems []string) {
	log.Error(what+" rejected: the previous one stays in force", "because", why,
		"errors", len(problems))
	for _, problem := range problems {
		log.Error(what, "error", problem)
	}
}

// LogWarnings logs the warnings of a text.
func LogWarnings(log *slog.Logger, what string, warnings []string) {
	for _, text := range warnings {
		log.Warn(what, "warning", text)
	}
}
