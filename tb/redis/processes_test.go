package redis

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// process is a worker of the test.
type process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	ready  chan struct{} // an element each time that the worker is ready
	served chan struct{} // is closed after the first grant
	ended  chan struct{} // is closed after the last event
	events []event       // valid after the last event
	err    error         // that ended them, or nil
}

func startProcess(t *testing.T, k task) *process {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		cmd: exec.Command(os.Args[0]), ready: make(chan struct{}, 1),
		served: make(chan struct{}), ended: make(chan struct{}),
	}
	// The race detector would delay the exit of a process by a second.
	p.cmd.Env = append(os.Environ(), taskVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.input.Close()
		<-p.ended
		_ = p.cmd.Wait() // the test may have waited
	})
	go p.read(bufio.NewReader(output))
	return p
}

// read reads the events until the process ends.
func (p *process) read(r io.Reader) {
	defer close(p.ended)
	for grants := 0; ; {
		var e event
		if err := binary.Read(r, binary.BigEndian, &e); err != nil {
			if !errors.Is(err, io.EOF) {
				p.err = err
			}
			return
		}
		if e.Units == 0 {
			p.ready <- struct{}{}
			continue
		}
		p.events = append(p.events, e)
		if e.Granted {
			if grants++; grants == 1 {
				close(p.served)
			}
		}
	}
}

// processes are workers that share a bucket, and a client of the server that has it.
type processes struct {
	all    []*process
	server rueidis.Client
}

// startProcesses starts workers with the same task. They are ready when it returns.
func startProcesses(t *testing.T, n int, k task) *processes {
	t.Helper()
	s := redistest.Start(t)
	k.Addr = s.Addr
	ps := &processes{server: dial(t, s)}
	for k.Worker = range n {
		ps.all = append(ps.all, startProcess(t, k))
	}
	ps.await(t)
	return ps
}

// await returns when all workers are ready.
func (ps *processes) await(t *testing.T) {
	t.Helper()
	for _, p := range ps.all {
		select {
		case <-p.ready:
		case <-p.ended:
			t.Fatal("a worker has ended")
		}
	}
}

// begin lets each goroutine of the workers make n calls: see task.
func (ps *processes) begin(t *testing.T, n int) {
	t.Helper()
	for _, p := range ps.all {
		if _, err := fmt.Fprintln(p.input, n); err != nil {
			t.Fatal(err)
		}
	}
}

// pass returns after some time by the server's clock.
func (ps *processes) pass(t *testing.T, d time.Duration) {
	t.Helper()
	wait := ps.server.B().Blpop().Key("missing").Timeout(d.Seconds()).Build()
	if err := ps.server.Do(t.Context(), wait).Error(); !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
}

// awaitGrants returns when each worker has been granted a call.
func (ps *processes) awaitGrants(t *testing.T) {
	t.Helper()
	for _, p := range ps.all {
		select {
		case <-p.served:
		case <-p.ended:
			t.Fatal("a worker has ended")
		}
	}
}

// end ends the input of the workers, and returns their events. The exit status of a worker counts
// unless the worker was killed.
func (ps *processes) end(t *testing.T, killed *process) (events []event) {
	t.Helper()
	for _, p := range ps.all {
		_ = p.input.Close() // a killed process has closed it
	}
	for _, p := range ps.all {
		<-p.ended
		if err := p.cmd.Wait(); p.err != nil || err != nil && p != killed {
			t.Fatalf("a worker: %v, %v", p.err, err)
		}
		events = append(events, p.events...)
	}
	return events
}
