package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asCaddy is the environment variable that makes the program of the tests Caddy.
const asCaddy = "TEST_AS_CADDY"

func TestMain(m *testing.M) {
	if os.Getenv(asCaddy) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// get returns the status and the body of a path on a socket of Caddy.
func get(t *testing.T, socket, path string) (status int, body string) {
	var d net.Dialer
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	w, err := client.Get("http://127.0.0.1" + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Error(err)
	}
	return w.StatusCode, string(text)
}

// The program is Caddy with the module. A request that waits for its tokens is refused in time when
// Caddy stops with a grace period.
func TestAStopEndsWaiting(t *testing.T) {
	dir := t.TempDir()
	admin, site := filepath.Join(dir, "admin"), filepath.Join(dir, "http")
	config := "{\nadmin unix/" + admin + "\nauto_https off\ngrace_period 10m\n}\nhttp://:80 {\n" +
		"bind unix/" + site + "\ntoken_bucket api {\nrule r {\nkey none\nrate 1/h\nburst 1\ndelay 2h\n" +
		"}\n}\nrespond ok\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "run")
	c.Dir = dir
	c.Env = append(os.Environ(), asCaddy+"=1", "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines, line := bufio.NewScanner(stderr), ""
	for lines.Scan() && !strings.Contains(line, "serving initial configuration") {
		line = lines.Text()
		t.Log(line)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	if status, body := get(t, site, "/"); status != http.StatusOK {
		t.Fatalf("status %d, want 200\n%s", status, body)
	}
	answer := make(chan int)
	go func() {
		status, _ := get(t, site, "/")
		answer <- status
	}()
	const waits = `tb_waiting_requests{limiter="api",rule="r",set="r"} 1`
	for _, metrics := get(t, admin, "/metrics"); !strings.Contains(metrics, waits); {
		_, metrics = get(t, admin, "/metrics")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// The token comes in an hour, and the grace period is shorter.
	if status := <-answer; status != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", status)
	}
	<-done
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
