package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long the run waits for something that must happen.
const patience = 30 * time.Second

// process is a program that can be started again.
type process struct {
	name    string
	command []string
	env     []string // in addition
	log     string   // the file of its output
	running *exec.Cmd
	ended   chan error
}

// start starts the program, with a command in front of it that executes it.
func (p *process) start(front ...string) error {
	args := slices.Concat(front, p.command)
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	p.running, p.ended = cmd, make(chan error, 1)
	go func() { p.ended <- cmd.Wait() }()
	return nil
}

// signal sends a signal. It fails if the process could not be started.
func (p *process) signal(s os.Signal) error {
	if p.running == nil {
		return os.ErrProcessDone
	}
	return p.running.Process.Signal(s)
}

// stop ends the process with a signal. The exit status counts, unless the signal is SIGKILL.
func (p *process) stop(s os.Signal) error {
	if err := p.signal(s); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	err := <-p.ended
	p.running = nil
	if err != nil && s != os.Kill {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// kill ends the process, if it runs.
func (p *process) kill() {
	if p.running != nil {
		_ = p.stop(os.Kill) // it may have ended
	}
}

// await polls until a condition holds.
func await(ctx context.Context, what string, holds func() bool) error {
	for end := time.Now().Add(patience); !holds(); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %v in vain: %s", patience, what)
		}
	}
	return nil
}

// freeAddresses returns addresses that nothing listens on. Their ports are below the ports that the
// system chooses, so that no other process gets one while a server is started again.
func freeAddresses(n int) (all []string, err error) {
	const low, high = 10_000, 32_768
	for port := low + rand.IntN((high-low)/2); len(all) < n; port++ {
		if port == high {
			return nil, fmt.Errorf("127.0.0.1 has fewer than %d free ports below %d", n, high)
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close() // nothing has connected
			all = append(all, address)
		}
	}
	return all, nil
}

// metrics are the values at /metrics, by name and labels as they stand there.
type metrics map[string]float64

// get returns the text of a page.
func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	r.Close = true // a server that is started again has new connections
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(text), err
}

// scrape reads the metrics of a server.
func (s *server) scrape(ctx context.Context) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := get(ctx, "http://"+s.admin+"/metrics")
	m := make(metrics)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			m[line[:i]], _ = strconv.ParseFloat(line[i+1:], 64) // a value that is wrong is 0
		}
	}
	return m, err
}

// sum returns the sum of the values with a name and a text in their labels.
func (m metrics) sum(name, label string) (sum float64) {
	for series, v := range m {
		if n, labels, _ := strings.Cut(series, "{"); n == name && strings.Contains(labels, label) {
			sum += v
		}
	}
	return sum
}

// replace replaces a file in one step.
func replace(name string, content []byte) error {
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// hasTimeNamespaces reports whether a process can have another monotonic clock.
func hasTimeNamespaces() bool {
	return exec.Command("unshare", "--time", "--monotonic", "100", "true").Run() == nil
}

// sleep waits, unless ctx is done first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// isRefused reports whether nothing listened on the address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
