// Package redistest starts Redis servers for tests.
package redistest

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// required is the environment variable that makes a missing server an error. The gate sets it, so
// that it skips no test.
const required = "REQUIRE_REDIS"

// Server is a Redis server on a free port of 127.0.0.1. It saves nothing to a disk.
type Server struct {
	Addr    string
	Process *os.Process
}

// Start starts a server with the given arguments, for example "--maxmemory", "2mb". The server
// ends with the test. REDIS_SERVER names the program; the default is redis-server, or valkey-server
// if that is missing. Without such a program, Start skips the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return listen(t, "--port", args)
}

// StartTLS starts a server that accepts only TLS, with the files of a certificate and its key, and
// only clients that have the same certificate.
func StartTLS(t testing.TB, certificate, key string) *Server {
	t.Helper()
	return listen(t, "--tls-port", []string{"--port", "0", "--tls-auth-clients", "yes",
		"--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate})
}

// listen starts a server that listens on the port that the option names.
func listen(t testing.TB, option string, args []string) *Server {
	t.Helper()
	program := find(t)
	for { // another process may take the port between freePort and the start
		s, log := start(t, program, freePort(t), option, args)
		if s != nil {
			return s
		}
		if !strings.Contains(log, "Address already in use") {
			t.Fatalf("%s does not start:\n%s", program, log)
		}
	}
}

func find(t testing.TB) string {
	t.Helper()
	names := []string{"redis-server", "valkey-server"}
	if name := os.Getenv("REDIS_SERVER"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv(required) != "" {
		t.Fatalf("%s is not installed, and %s is set", names[0], required)
	}
	t.Skipf("%s is not installed (Debian: apt-get install redis-server)", names[0])
	return ""
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port
}

// start returns nil and the log if the server ends before it accepts connections.
func start(
	t testing.TB, program string, port int, option string, args []string,
) (s *Server, log string) {
	t.Helper()
	cmd := exec.Command(program, append([]string{
		option, strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no", "--logfile", "",
	}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for r := bufio.NewScanner(out); r.Scan(); {
		lines.WriteString(r.Text() + "\n")
		if strings.Contains(r.Text(), "Ready to accept connections") {
			t.Cleanup(func() {
				_ = cmd.Process.Kill() // the test may have killed it
				_ = cmd.Wait()
			})
			go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with the server
			return &Server{Addr: "127.0.0.1:" + strconv.Itoa(port), Process: cmd.Process}, ""
		}
	}
	_ = cmd.Wait()
	return nil, lines.String()
}
