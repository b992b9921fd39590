package hostile

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// server is a tb-proxy or a tb-rls, and what its clients have seen.
type server struct {
	account
	*process
	name, address string
	command       []string
	output        *os.File
	redis         bool // the buckets are in Redis; otherwise clients use TLS
	newClient     func(worker int) client
	newFleet      func() client      // of package outbound, or nil
	hasLimit      func(l limit) bool // of clients, in force
	reloaded      string             // the metric that is 1 if the last reload succeeded
}

// The files that change.
const policyFile, configFile, certFile, keyFile = "policy.json", "limits.yaml", "cert", "key"

// newServer returns the server with a name: its program, and where it has its buckets.
func (s *soak) newServer(name, address, admin, upstream string) *server {
	s.Helper()
	program, store, _ := strings.Cut(name, "-")
	sv := &server{name: name, address: address, redis: store == "redis"}
	sv.process = &process{admin: admin}
	var err error
	if sv.output, err = os.Create(filepath.Join(s.ArtifactDir(), name+".log")); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { sv.output.Close() })
	file := func(name string) string { return filepath.Join(s.dir, name) }
	sv.command = []string{filepath.Join(programs, "tb-"+program), "--listen=" + address,
		"--admin=" + admin}
	tls := s.trusted()
	if sv.redis {
		tls = nil
		sv.command = append(sv.command, "--redis="+s.redis.address, "--redis-timeout=1s")
	} else {
		sv.command = append(sv.command, "--tls-cert="+file(certFile), "--tls-key="+file(keyFile))
	}
	if program == "rls" {
		sv.command = append(sv.command, "--config="+file(configFile))
		sv.newClient = func(int) client { return &grpcClient{address: address, tls: tls} }
		sv.reloaded = "tb_rls_config_last_reload_successful"
		sv.hasLimit = func(l limit) bool {
			return strings.Contains(sv.page(s.T, "/rlconfig"),
				fmt.Sprintf("soak.client: unit=SECOND requests_per_unit=%v,", l.rate))
		}
		return sv
	}
	sv.command = append(sv.command, "--policy="+file(policyFile), upstream,
		"--trusted-proxies=127.0.0.1")
	if sv.redis {
		sv.command = append(sv.command, "--redis-failure=refuse")
	} else {
		sv.command = append(sv.command, "--state="+file("state"), "--state-interval=10s")
	}
	sv.newClient = func(worker int) client {
		return newHTTPClient(address, tls, tls != nil && worker%2 == 0)
	}
	sv.newFleet = func() client { return newFleet(address, tls) }
	sv.reloaded = "tb_policy_last_reload_successful"
	sv.hasLimit = func(l limit) bool {
		return sv.metric(s.T, `tb_limit_tokens_per_second{rule="client",set=""}`) == l.rate
	}
	return sv
}

// start starts the server with a command in front, and waits until it listens.
func (sv *server) start(t *testing.T, front ...string) {
	t.Helper()
	admin, command := sv.admin, slices.Concat(front, sv.command)
	p, stdout := launch(t, sv.output, command[0], command[1:]...)
	p.proxy, p.admin = sv.address, admin
	p.await(t, stdout, func(string) {})
	sv.process = p
}

// redis is a Redis server. If there is a C compiler, its clock can be set.
type redis struct {
	*redistest.Server
	address string
	clock   *os.File // how far its clock is ahead, in seconds, or nil
}

func newRedis(t *testing.T, address string) *redis {
	t.Helper()
	r := &redis{address: address}
	program := cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")
	compiler, noCompiler := exec.LookPath("cc")
	if _, err := exec.LookPath(program); err == nil && noCompiler == nil {
		r.makeClock(t, compiler, program)
	}
	r.start(t)
	return r
}

// makeClock makes a library that sets the clock of the program, and a program that loads it.
func (r *redis) makeClock(t *testing.T, compiler, program string) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command(compiler, "-shared", "-fPIC", "-O", "-o", dir+"/clock.so",
		"testdata/clock.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var err error
	if r.clock, err = os.Create(dir + "/clock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.clock.Close() })
	r.writeClock(t, 0)
	script := fmt.Sprintf("#!/bin/sh\nexec env LD_PRELOAD=%[1]s/clock.so"+
		" CLOCK_AHEAD=%[1]s/clock %[2]s \"$@\"\n", dir, program)
	if err := os.WriteFile(dir+"/redis", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_SERVER", dir+"/redis")
}

// writeClock writes how far the clock is ahead. The process sees it at once.
func (r *redis) writeClock(t *testing.T, ahead time.Duration) {
	t.Helper()
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second))
	if _, err := r.clock.WriteAt(seconds, 0); err != nil {
		t.Fatal(err)
	}
}

// setClock sets the clock of the server ahead of the machine's clock.
func (r *redis) setClock(t *testing.T, ahead time.Duration) {
	t.Helper()
	r.writeClock(t, ahead)
	answer := r.do(t, "TIME", 3) // an array, the length of the seconds, and the seconds
	seconds, _ := strconv.ParseInt(answer[2], 10, 64)
	if off := time.Until(time.Unix(seconds, 0)) - ahead; off.Abs() > 2*time.Second {
		t.Fatalf("the clock of Redis is off by %v", off)
	}
}

// start starts the server.
func (r *redis) start(t *testing.T) {
	t.Helper()
	_, port, _ := net.SplitHostPort(r.address)
	r.Server = redistest.Start(t, "--port", port)
}

// do sends a command and returns lines of its answer.
func (r *redis) do(t *testing.T, command string, lines int) (answer []string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", r.address, deadline)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(deadline))
	fmt.Fprintf(conn, "%s\r\n", command)
	for scan := bufio.NewScanner(conn); len(answer) < lines && scan.Scan(); {
		answer = append(answer, scan.Text())
	}
	if len(answer) < lines || strings.HasPrefix(answer[0], "-") {
		t.Fatalf("%s: the answer of Redis is %q", command, answer)
	}
	return answer
}
