package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Process is what the servers of a process have in common. It must be closed.
type Process struct {
	Log       *slog.Logger
	Throttled *slog.Logger     // for what clients can cause
	Stdout    io.Writer        // never blocks
	Hangups   <-chan os.Signal // SIGHUP

	banner, lines *Writer
	closers       []func()
}

// NewProcess returns a process that writes in the background.
func NewProcess(stdout, stderr io.Writer, logFormat string) *Process {
	p := &Process{banner: NewWriter(stdout), Hangups: CatchHangups()}
	p.Log, p.lines = NewLog(stderr, logFormat)
	p.Stdout, p.Throttled = p.banner, Throttled(p.Log)
	return p
}

// OnClose calls f when the process is closed.
func (p *Process) OnClose(f func()) { p.closers = append(p.closers, f) }

// Close closes what is open, and waits a bounded time until everything is written.
func (p *Process) Close() {
	for _, f := range p.closers {
		f()
	}
	p.banner.Close()
	p.lines.Close()
}

// LostLines returns how many lines of the log were dropped.
func (p *Process) LostLines() uint64 { return p.lines.dropped.Load() }

// ListenTCP opens a port at the address in a flag until the process is closed.
func (p *Process) ListenTCP(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (use port 0 for any free port)", flag, err)
	}
	p.OnClose(func() { _ = l.Close() }) // it is closed already, or has not accepted anything
	return l, nil
}

// InOrder runs the steps of a server until one fails, and returns its error.
func InOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Every returns a task that calls f at intervals until its context is done.
func Every(interval time.Duration, f func()) func(context.Context) {
	return func(ctx context.Context) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				f()
			}
		}
	}
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

// Stoppable is a server of a process.
type Stoppable interface {
	// Start serves in the background. It sends the error if serving ends before Stop is called.
	Start(failed chan<- error)
	// Stop lets the clients go elsewhere for a delay. Then it waits up to grace for the requests under
	// way, and cuts off the rest. It returns an error if it cut off any.
	Stop(delay, grace time.Duration) error
}

// Serve serves until ctx is done or a server fails, and returns its error. Then it stops the
// servers one after another, because the requests of one may need the next.
func (p *Process) Serve(
	ctx context.Context, delay, grace time.Duration, servers ...Stoppable,
) (err error) {
	failed := make(chan error, len(servers))
	for _, s := range servers {
		s.Start(failed)
	}
	select {
	case <-ctx.Done():
		p.Log.Info("shutting down", "at_most", delay+grace)
	case err = <-failed:
		delay = 0
	}
	for _, s := range servers {
		if cut := s.Stop(delay, grace); cut != nil {
			p.Log.Warn("requests were cut off", "error", cut)
		}
	}
	return err
}
