package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// redis is a Redis server that saves nothing to a disk. If there is a C compiler, its clock can be
// set.
type redis struct {
	process
	address string
	clock   *os.File // how far its clock is ahead, in seconds, or nil
}

func newRedis(dir, address string) (*redis, error) {
	_, port, _ := net.SplitHostPort(address)
	r := &redis{address: address, process: process{
		name: "redis-server", log: filepath.Join(dir, "redis.log"),
		command: []string{"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no"},
	}}
	return r, r.makeClock(dir)
}

// preload is the source of a library that sets the clock.
//
//go:embed preload/clock.c
var preload string

// makeClock makes a library that sets the clock of the server, if there is a C compiler.
func (r *redis) makeClock(dir string) error {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return nil
	}
	library, clock := filepath.Join(dir, "clock.so"), filepath.Join(dir, "clock")
	build := exec.Command(compiler, "-shared", "-fPIC", "-O", "-o", library, "-x", "c", "-")
	build.Stdin = strings.NewReader(preload)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	r.env = []string{"LD_PRELOAD=" + library, "CLOCK_AHEAD=" + clock}
	r.clock, err = os.Create(clock)
	if err != nil {
		return err
	}
	return r.writeClock(0)
}

// writeClock writes how far the clock is ahead. The process sees it at once.
func (r *redis) writeClock(ahead time.Duration) error {
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second))
	_, err := r.clock.WriteAt(seconds, 0)
	return err
}

// begin starts the server and waits until it answers.
func (r *redis) begin(ctx context.Context) error {
	if err := r.start(); err != nil {
		return err
	}
	return await(ctx, "Redis answers", func() bool {
		_, err := r.now()
		return err == nil
	})
}

// do sends a command and returns the lines of its answer, at most as many as asked for.
func (r *redis) do(command string, lines int) (answer []string, err error) {
	conn, err := net.DialTimeout("tcp", r.address, time.Second)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // the answer shows whether the command was written
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return nil, err
	}
	for scan := bufio.NewScanner(conn); len(answer) < lines && scan.Scan(); {
		answer = append(answer, scan.Text())
	}
	if len(answer) < lines || strings.HasPrefix(answer[0], "-") {
		return nil, fmt.Errorf("%s: the answer of Redis is %q", command, answer)
	}
	return answer, nil
}

// now returns the clock of the server.
func (r *redis) now() (time.Time, error) {
	answer, err := r.do("TIME", 3) // an array, the length of the seconds, and the seconds
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(answer[2], 10, 64)
	return time.Unix(seconds, 0), err
}

// setClock sets the clock of the server ahead of the machine's clock.
func (r *redis) setClock(ctx context.Context, ahead time.Duration) error {
	if err := r.writeClock(ahead); err != nil {
		return err
	}
	return await(ctx, "the clock of Redis is set", func() bool {
		now, err := r.now()
		return err == nil && (time.Until(now)-ahead).Abs() <= 2*time.Second
	})
}
