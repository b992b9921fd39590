package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

// caddy returns a command of Caddy that keeps its files in dir.
func caddy(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), asCaddy+"=1", "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return c
}

// write writes a Caddyfile with one site, whose admin API and site have the sockets admin and http.
func write(t *testing.T, dir, options, rule string) {
	t.Helper()
	text := "{\nadmin unix/" + dir + "/admin\nauto_https off\n" + options + "\n}\nhttp://:80 {\n" +
		"bind unix/" + dir + "/http\ntoken_bucket api {\nrule r {\n" + rule + "\n}\n}\nrespond ok\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// process is Caddy, which runs the Caddyfile of its folder.
type process struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when stderr is
}

func run(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{t: t, dir: dir, cmd: caddy(t, dir, "run"), done: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool)
	go func() {
		defer close(p.done)
		lines, log := bufio.NewScanner(stderr), bytes.Buffer{}
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "serving initial configuration") {
				close(ready)
			}
		}
		select {
		case <-ready:
		default:
			t.Errorf("Caddy does not start:\n%s", &log)
			close(ready)
		}
	}()
	<-ready
	return p
}

// get returns the status and the body of a path on one of the sockets of the process.
func (p *process) get(socket, path string) (status int, body string) {
	p.t.Helper()
	var d net.Dialer
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", filepath.Join(p.dir, socket))
		},
	}}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		p.t.Error(err)
		return 0, ""
	}
	w, err := client.Do(r)
	if err != nil {
		p.t.Error(err)
		return 0, ""
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		p.t.Error(err)
	}
	return w.StatusCode, string(text)
}

func (p *process) want(status int) {
	p.t.Helper()
	if got, body := p.get("http", "/"); got != status {
		p.t.Fatalf("status %d, want %d\n%s", got, status, body)
	}
}

// stop sends SIGTERM and waits for the end of the process.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	<-p.done
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

func TestReloadAndMetricsAndStop(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "", "key none\nrate 1/h\nburst 2")
	p := run(t, dir)
	p.want(200)
	write(t, dir, "", "key none\nrate 2/h\nburst 3")
	if out, err := caddy(t, dir, "reload").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.want(200)
	p.want(429)
	write(t, dir, "", "key none\nrate 5/s\nburst 3")
	out, err := caddy(t, dir, "reload").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Caddyfile:12") {
		t.Errorf("a policy with an error is accepted: %v\n%s", err, out)
	}
	p.want(429)
	const refused = "tb_requests_total" +
		`{limiter="api",outcome="refused",rule="r",set="r"} 2`
	if _, metrics := p.get("admin", "/metrics"); !strings.Contains(metrics, refused) {
		t.Errorf("the metrics do not have %s\n%s", refused, metrics)
	}
	p.stop()
}

// A request that waits for its tokens is refused in time when Caddy stops with a grace period.
func TestAStopEndsWaiting(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "grace_period 10m", "key none\nrate 1/h\nburst 1\ndelay 2h")
	p := run(t, dir)
	p.want(200)
	answer := make(chan int)
	go func() {
		status, _ := p.get("http", "/")
		answer <- status
	}()
	const waits = `tb_waiting_requests{limiter="api",rule="r",set="r"} 1`
	for _, metrics := p.get("admin", "/metrics"); !strings.Contains(metrics, waits); {
		_, metrics = p.get("admin", "/metrics")
	}
	p.stop() // the token comes in an hour, and the grace period is shorter
	if status := <-answer; status != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", status)
	}
}

func TestValidateAndAdapt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "", "key {client_ip}\nrate 100/m\nburst 20")
	if out, err := caddy(t, dir, "validate").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "Valid configuration") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := caddy(t, dir, "adapt").Output()
	if err != nil || !json.Valid(out) ||
		!strings.Contains(string(out), `"limit_keys":["ip:address"]`) {
		t.Errorf("%v\n%s", err, out)
	}
	for rule, want := range map[string]string{
		"key {client_ip}\nrate 100/m\nburst 1": "burst must be >= the tokens of a second",
		"key {client_ip}\nrate 100\nburst 200": `rate \"100\": want`,
	} {
		write(t, dir, "", rule)
		for _, command := range []string{"validate", "adapt"} {
			out, err := caddy(t, dir, command).CombinedOutput()
			if text := string(out); err == nil || !strings.Contains(text, want) &&
				!strings.Contains(text, strings.ReplaceAll(want, `\`, "")) ||
				!strings.Contains(text, "Caddyfile:") {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
	}
	document := `{"apps": {"http": {"servers": {"s": {"routes": [{"handle": [{
		"handler": "token_bucket", "policy": {"rules": [{"name": "r"}]}}]}]}}}}}`
	name := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(name, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = caddy(t, dir, "validate", "--config", name).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "rules[0].limit_keys") {
		t.Errorf("%v\n%s", err, out)
	}
}
