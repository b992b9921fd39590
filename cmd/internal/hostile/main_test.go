package hostile

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	// What the programs are made of, which go test thus compiles before they are built, and once.
	_ "github.com/seed-181794aa/ratelimit/cmd/internal/proxy"
	_ "github.com/seed-181794aa/ratelimit/cmd/internal/rls"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// deadline is how long a test waits for something that must happen. No verdict depends on it
// unless it never happens.
const deadline = 30 * time.Second

// programs is the directory of the programs, which are linked as they are distributed.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if programs, err = os.MkdirTemp("", "hostile"); err != nil {
		panic(err)
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", programs, "../../tb-proxy",
		"../../tb-rls")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(programs)
	os.Exit(status)
}

// find returns the program that a variable such as ENVOY names, or else that is in PATH. Without
// one it skips the test, or fails if REQUIRE_ENVOY is set, as in the gate.
func find(t *testing.T, name string) string {
	t.Helper()
	variable := strings.ToUpper(name)
	path, err := exec.LookPath(cmp.Or(os.Getenv(variable), name))
	if err != nil && os.Getenv("REQUIRE_"+variable) != "" {
		t.Fatalf("%v, and REQUIRE_%s is set", err, variable)
	}
	if err != nil {
		t.Skipf("%v: nothing was tested with it", err)
	}
	return path
}

// process is a running tb-proxy or tb-rls.
type process struct {
	*exec.Cmd
	proxy, admin string // host and port; admin may be ""; of tb-rls, proxy is the service
	log          string // the file with its log
	wait         func() error
}

// start starts tb-proxy on free ports. The flags may override where it listens.
func start(t *testing.T, flags ...string) *process {
	t.Helper()
	return startWithLog(t, newLog(t), flags...)
}

// newLog returns a file for a log, which is open until the end of the test.
func newLog(t *testing.T) *os.File {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// startWithLog starts tb-proxy with this standard error.
func startWithLog(t *testing.T, log *os.File, flags ...string) *process {
	t.Helper()
	p, stdout := launch(t, log, "tb-proxy", append([]string{"--shutdown-delay=0s",
		"--listen=127.0.0.1:0", "--admin=127.0.0.1:0"}, flags...)...)
	p.await(t, stdout, func(line string) {
		for _, word := range strings.Fields(line) {
			_, host, ok := strings.Cut(strings.TrimRight(word, ",."), "://")
			host, path, _ := strings.Cut(host, "/")
			switch {
			case !ok:
			case p.proxy == "":
				p.proxy = host
			case path == "metrics":
				p.admin = host
			}
		}
	})
	return p
}

// await calls read with each line of the banner, and returns when the program listens.
func (p *process) await(t *testing.T, stdout io.Reader, read func(line string)) {
	t.Helper()
	banner := bufio.NewScanner(stdout)
	for banner.Scan() && !strings.HasPrefix(banner.Text(), "Ctrl-C") {
		read(banner.Text())
	}
	if p.proxy == "" {
		t.Fatalf("%q did not start: %v\n%s", p.Args, p.wait(), p.logged(t))
	}
	go io.Copy(io.Discard, stdout)
}

// launch starts a program with this standard error, and returns its standard output. A name stands
// for one of the programs.
func launch(
	t *testing.T, log *os.File, program string, args ...string,
) (*process, io.Reader) {
	t.Helper()
	p := &process{log: log.Name()}
	if !filepath.IsAbs(program) {
		program = filepath.Join(programs, program)
	}
	p.Cmd = exec.CommandContext(t.Context(), program, args...)
	p.Stderr = log
	stdout, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.wait = sync.OnceValue(p.Wait)
	t.Cleanup(func() {
		p.Process.Kill()
		p.wait()
	})
	return p, stdout
}

// fail runs tb-proxy, which must exit with an error, and returns its standard error.
func fail(t *testing.T, flags ...string) string {
	t.Helper()
	args := []string{"--listen=127.0.0.1:0", "--admin=127.0.0.1:0"}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(programs, "tb-proxy"), append(args,
		flags...)...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("%q: %v, want an error", flags, err)
	}
	return string(out)
}

// signal sends a signal.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop sends SIGTERM. The process must end without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.terminate(t); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// terminate sends SIGTERM and returns the error of the process, which must end.
func (p *process) terminate(t *testing.T) (err error) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- p.wait() }()
	select {
	case err = <-ended:
	case <-time.After(deadline):
		t.Fatal("SIGTERM did not stop the process")
	}
	return err
}

// logged returns the log so far.
func (p *process) logged(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitLog waits until the log contains a text.
func (p *process) awaitLog(t *testing.T, text string) {
	t.Helper()
	await(t, "a log with "+text, func() bool { return strings.Contains(p.logged(t), text) })
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// page returns a page of the admin server.
func (p *process) page(t *testing.T, path string) string {
	t.Helper()
	_, text := raw(t, p.admin, "GET "+path+" HTTP/1.1\nHost: localhost\nConnection: close\n\n")
	return text
}

// metrics returns the metrics, by name and labels as they stand in the page.
func (p *process) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(p.page(t, "/metrics")) {
		if space := strings.LastIndexByte(line, ' '); line[0] != '#' {
			all[line[:space]], _ = strconv.ParseFloat(strings.TrimSpace(line[space:]), 64)
		}
	}
	return all
}

func (p *process) metric(t *testing.T, name string) float64 {
	t.Helper()
	return p.metrics(t)[name]
}

// upstream starts a server in the test and returns the flag that names it.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return "--upstream=" + s.URL
}

// policy writes a policy that grants each value of the keys so many requests in the test.
func policy(t *testing.T, burst int, keys string) string {
	t.Helper()
	return "--policy=" + testkit.File(t, "policy.json", fmt.Sprintf(`{"name": "r", "limit_keys": [%s],
		"algorithm_config": {"tokens_per_second": 0.001, "burst": %d}}`, keys, burst))
}
