package redis

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A worker is another process of this test binary, with a limiter of its own. Its task is in its
// environment. It writes a line when it is connected, starts when it reads a line with the end of
// its calls, and writes its tally when it has made its calls and has closed its limiter.

const taskVariable = "REDIS_BENCHMARK_TASK"

// task is what a worker does.
type task struct {
	Addr, Contender, Key string
	Limit                tb.Limit
	Goroutines           int
	Calls                int
	Endless              bool // makes calls until their end, or until the input ends, instead of Calls
}

func TestMain(m *testing.M) {
	text := os.Getenv(taskVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := work(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	i := slices.IndexFunc(Contenders, func(c Contender) bool { return c.Name == t.Contender })
	l, err := Contenders[i].Open(t.Addr, t.Limit)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	connect(ctx, l, t.Goroutines)
	fmt.Println("connected")
	var end int64 // in ns since 1970, or 0
	if _, err := fmt.Scanln(&end); err != nil {
		return err
	}
	next := calls(t.Calls, t.Goroutines)
	if t.Endless {
		ctx, cancel = context.WithDeadline(ctx, time.Unix(0, end))
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		next = until(ctx.Done())
	}
	sum := crowd(ctx, l, t.Goroutines, on(t.Key), next)
	l.Close()
	sum.addAbandoned(l)
	return json.NewEncoder(os.Stdout).Encode(sum)
}

// worker is a running process.
type worker struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// startWorker returns when the worker is connected.
func startWorker(tb testing.TB, t task) *worker {
	tb.Helper()
	text, err := json.Marshal(t)
	if err != nil {
		tb.Fatal(err)
	}
	w := &worker{cmd: exec.Command(os.Args[0])}
	w.cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	w.cmd.Stderr = os.Stderr
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	output, err := w.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	w.output = bufio.NewReader(output)
	if err := w.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = w.input.Close()
		if err := w.cmd.Wait(); err != nil {
			tb.Errorf("a worker: %v", err)
		}
	})
	if _, err := w.output.ReadString('\n'); err != nil {
		tb.Fatalf("a worker did not connect: %v", err)
	}
	return w
}

// workers are processes with the same task.
type workers []*worker

// startWorkers divides the goroutines and the calls of a task among n processes.
func startWorkers(tb testing.TB, n int, t task) (all workers) {
	tb.Helper()
	goroutines, calls := t.Goroutines, t.Calls
	for i := range n {
		t.Goroutines, t.Calls = share(goroutines, n, i), share(calls, n, i)
		all = append(all, startWorker(tb, t))
	}
	return all
}

// share returns the i-th of n parts of a whole.
func share(whole, n, i int) int { return whole*(i+1)/n - whole*i/n }

// begin lets the workers make their calls, until the end if they are endless.
func (all workers) begin(tb testing.TB, end time.Time) {
	tb.Helper()
	for _, w := range all {
		if _, err := fmt.Fprintln(w.input, end.UnixNano()); err != nil {
			tb.Fatal(err)
		}
	}
}

// end ends the input of the workers and returns their results. The processes may still run: under
// the race detector an exit takes a second.
func (all workers) end(tb testing.TB) (sum tally) {
	tb.Helper()
	for _, w := range all {
		if err := w.input.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	for _, w := range all {
		var t tally
		if err := json.NewDecoder(w.output).Decode(&t); err != nil {
			tb.Fatalf("a worker's tally: %v", err)
		}
		sum.add(t)
	}
	return sum
}
