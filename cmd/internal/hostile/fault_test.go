package hostile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// A standard error that takes nothing stops neither the proxy nor its end. The lost lines are
// counted.
func TestStandardErrorIsFull(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := startWithLog(t, w, upstream(t, echo), "--policy=off", "--access-log=all")
	w.Close()
	long := strings.Repeat("x", 8000)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 250 { // 8 MB, far more than a pipe and the proxy hold
				resp, err := http.Get("http://" + p.proxy + "/" + long)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			}
		})
	}
	group.Wait()
	if p.metric(t, "tb_lost_log_lines_total") == 0 {
		t.Error("no lost lines are counted")
	}
	p.stop(t)
}

// The end of the process that reads the log does not end the proxy.
func TestStandardErrorIsClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := startWithLog(t, w, upstream(t, echo), "--policy=off", "--access-log=all")
	w.Close()
	r.Close()
	await(t, "lost lines", func() bool {
		raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nConnection: close\n\n")
		return p.metric(t, "tb_lost_log_lines_total") > 0
	})
	p.stop(t)
}

// SIGHUP does not end a proxy that has no policy file.
func TestSIGHUPWithoutAPolicyFile(t *testing.T) {
	for _, flags := range [][]string{{}, {"--policy=off"}} {
		p := start(t, flags...)
		p.signal(t, syscall.SIGHUP)
		p.stop(t)
	}
}

// A policy file that is a named pipe is an error, and neither hangs the start nor the end.
func TestPolicyFileIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if out := fail(t, "--policy="+pipe); !strings.Contains(out, "want a regular file") {
		t.Error(out)
	}
	name := testkit.File(t, "policy.json", generous)
	p := start(t, upstream(t, echo), "--policy="+name)
	if err := os.Rename(pipe, name); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "want a regular file")
	p.signal(t, syscall.SIGHUP)
	p.awaitLog(t, "because=SIGHUP")
	if r, _ := raw(t, p.proxy, "GET / HTTP/1.1\nHost: h\nConnection: close\n\n"); r.StatusCode !=
		http.StatusOK {
		t.Error(r.Status)
	}
	p.stop(t)
}

// rawUpstream starts a server that answers each request with a text.
func rawUpstream(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	return "--upstream=http://" + testkit.Serve(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			answer(conn)
		}
	})
}

// Whatever clients and upstreams do, the log has a bounded number of lines, and each is JSON.
func TestFaultsDoNotFloodTheLog(t *testing.T) {
	write := func(text string) func(net.Conn) {
		return func(c net.Conn) { io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n")) }
	}
	const upgrade = "GET / HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: websocket\n\n"
	const plain = "GET / HTTP/1.1\nHost: h\nConnection: close\n\n"
	const requests = 200
	gone := make(chan struct{}, requests) // clients that have reset their connections
	for _, tt := range []struct {
		name    string
		answer  func(net.Conn)
		request string
		reset   bool // the client resets the connection at once
		status  int  // 0 for any
	}{
		{"status 000", write("HTTP/1.1 000 No\nContent-Length: 0\n\n"), plain, false, 502},
		{"status 042", write("HTTP/1.1 042 No\nContent-Length: 0\n\n"), plain, false, 502},
		{"surplus bytes", write("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi, more\n"), plain, false, 0},
		{"no HTTP", write("\x1b[2J\u009b\n"), plain, false, 502},
		{"body cut off", func(c net.Conn) {
			write("HTTP/1.1 200 OK\nContent-Length: 9\n\nhi")(c)
			c.Close()
		}, plain, true, 0},
		{"reset upgrade", write("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\n" +
			"Upgrade: websocket\n\n" + strings.Repeat("x", 1<<16)), upgrade, true, 0},
		{"late reset of an upgrade", func(c net.Conn) {
			<-gone
			write("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n")(c)
		}, upgrade, true, 0},
	} {
		p := start(t, rawUpstream(t, tt.answer), "--policy=off", "--log-format=json")
		begin := time.Now()
		for len(gone) > 0 {
			<-gone
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range requests / 8 {
					if tt.reset {
						reset(p.proxy, tt.request)
						gone <- struct{}{}
						continue
					}
					r, _, err := exchange(p.proxy, tt.request)
					if err != nil || tt.status != 0 && r.StatusCode != tt.status {
						t.Errorf("%s: %v, %v", tt.name, r, err)
					}
				}
			})
		}
		group.Wait()
		p.stop(t)
		// The throttle admits 100 lines at once and 20 a second.
		most := 110 + int(20*time.Since(begin).Seconds())
		log := strings.Split(strings.TrimSpace(p.logged(t)), "\n")
		for _, line := range log {
			if !json.Valid([]byte(line)) || strings.Contains(line, "goroutine ") ||
				strings.ContainsAny(line, "\x1b\x7f\u009b") {
				t.Errorf("%s: %s", tt.name, line)
			}
		}
		if len(log) > most {
			t.Errorf("%s: %d lines for %d requests, want at most %d: %s", tt.name, len(log), requests,
				most, log[len(log)/2])
		}
	}
}

// reset sends a request and resets the connection as soon as something arrives, or at once.
func reset(address, text string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	conn.Read(make([]byte, 1))
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// A body that stops coming is given up, and so is a header.
func TestSlowClients(t *testing.T) {
	p := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(w, r.Body)
		fmt.Fprint(w, err)
	}), "--policy=off", "--body-timeout=50ms", "--header-timeout=50ms")
	r, _ := raw(t, p.proxy, "POST / HTTP/1.1\nHost: h\nContent-Length: 9\n\nhalf")
	if r.StatusCode != http.StatusRequestTimeout || !r.Close {
		t.Errorf("a body that stops: %s, closes: %v", r.Status, r.Close)
	}
	conn, err := net.Dial("tcp", p.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\n")
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("a header that stops: %v", err)
	}
	// The time limit of a body does not hold for the next request or a slow answer.
	conn, err = net.Dial("tcp", p.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 3 {
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); string(body) != "hello<nil>" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
}
