package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// rules is a policy of two slow rules. Only the second depends on burst.
func rules(burst int) string {
	return fmt.Sprintf(`{"rules": [
		{"name": "kept", "limit_keys": ["header:x-a"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": 2}},
		{"name": "changed", "limit_keys": ["header:x-b"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": %d}}]}`, burst)
}

// watched is a proxy and the reloader of its policy file.
type watched struct {
	*Proxy
	*daemon.Watcher
	file string
	url  string
	log  *testkit.Transcript
}

// polls polls the file n times.
func (w *watched) polls(n int) {
	for range n {
		w.Poll()
	}
}

// watch starts a proxy with a policy and a reloader for the file that contains it.
func watch(t *testing.T, policy, name string, upstream http.HandlerFunc) *watched {
	t.Helper()
	w := &watched{file: name, log: testkit.NewTranscript()}
	w.Proxy, w.url, _ = start(t, policy, upstream, func(c *Config) { c.Log = w.log.Logger() })
	w.Watcher = newReloader(w.Proxy, name).Watcher(
		func() (string, error) { return daemon.ReadRegular(name) }, policy)
	return w
}

// A change of a limit keeps the tokens of all buckets, and touches no response under way.
func TestReload(t *testing.T) {
	more := make(chan struct{})
	p := watch(t, rules(1), file(t, rules(1)), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			fmt.Fprintln(w, "before")
			_ = http.NewResponseController(w).Flush()
			<-more
			fmt.Fprintln(w, "after")
		}
	})
	statuses := func(header string) (all string) {
		for range 4 {
			r, _ := get(t, p.url, header, "k")
			all += fmt.Sprint(r.StatusCode, " ")
		}
		return all
	}
	if got := statuses("X-A") + statuses("X-B"); got != "200 200 429 429 200 429 429 429 " {
		t.Fatal(got)
	}
	stream, err := http.Get(p.url + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Scan()

	// Editors save a file by renaming a new one over it.
	next := filepath.Join(t.TempDir(), "next")
	write(t, next, rules(3))
	if err := os.Rename(next, p.file); err != nil {
		t.Fatal(err)
	}
	p.polls(2)
	p.log.Until(t, "policy reloaded")
	if got := statuses("X-A") + statuses("X-B"); got != "429 429 429 429 429 429 429 429 " {
		t.Error(got)
	}
	close(more)
	if lines.Scan(); lines.Text() != "after" {
		t.Errorf("the stream was cut off: %q, %v", lines.Text(), lines.Err())
	}
	if s := p.Limiter.Stats()[0]; s.Granted != 2 || s.Refused != 6 {
		t.Errorf("counts of the kept rule: %+v", s)
	}
	if s := p.Limiter.Stats()[1]; s.Granted != 1 || s.Refused != 7 || s.Limit.Capacity != 3 {
		t.Errorf("counts of the changed rule: %+v", s)
	}
}

// Any symbolic link on the path to the file may be replaced. Kubernetes replaces one in the
// directory of the file, other tools replace the directory.
func TestReloadBehindLinks(t *testing.T) {
	dir := t.TempDir()
	version := func(burst int) string {
		name := filepath.Join(dir, fmt.Sprint("v", burst))
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(name, "policy.json"), rules(burst))
		return name
	}
	link := func(target, name string) {
		next := filepath.Join(dir, "next")
		if err := os.Symlink(target, next); err != nil {
			t.Skip(err)
		}
		if err := os.Rename(next, name); err != nil {
			t.Fatal(err)
		}
	}
	data, current := filepath.Join(dir, "..data"), filepath.Join(dir, "current")
	link(version(1), data)
	link(filepath.Join("..data", "policy.json"), filepath.Join(dir, "policy.json"))
	link(version(11), current)
	for burst, of := range map[int]struct{ file, link string }{
		1:  {filepath.Join(dir, "policy.json"), data},
		11: {filepath.Join(current, "policy.json"), current},
	} {
		w := watch(t, rules(burst), of.file, nil)
		for i := 1; i <= 3; i++ {
			link(version(burst+i), of.link)
			w.polls(2)
			w.log.Until(t, "policy reloaded")
			if got := w.Limiter.Stats()[1].Limit.Capacity; got != burst+i {
				t.Errorf("%s: burst %d, want %d", of.link, got, burst+i)
			}
			if err := os.RemoveAll(filepath.Join(dir, fmt.Sprint("v", burst+i-1))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A file is not applied while it still changes, and not applied again while it stays the
// same.
func TestReloadWaitsForTheWholeFile(t *testing.T) {
	w := watch(t, two, file(t, two), nil)
	w.polls(3)
	next := strings.Replace(two, `"burst": 2`, `"burst": 3`, 1)
	for _, part := range []string{"", "{", `{"rules": [`, next} {
		write(t, w.file, part)
		w.polls(1)
	}
	w.polls(4)
	if line := w.log.Until(t, "because"); !strings.Contains(line, "policy reloaded") {
		t.Error(line)
	}
	if n := len(w.log.Lines); n > 0 {
		t.Errorf("%d unexpected lines: %s", n, <-w.log.Lines)
	}
}

// The log reports once that the file is gone, and once that it is back.
func TestReloadOfAMissingFile(t *testing.T) {
	w := watch(t, two, file(t, two), func(http.ResponseWriter, *http.Request) {})
	if err := os.Remove(w.file); err != nil {
		t.Fatal(err)
	}
	w.polls(5)
	w.log.Until(t, "no such file")
	if r, _ := get(t, w.url); r.Header.Get("RateLimit") != `"two";r=1;t=10` {
		t.Error(r.Header)
	}
	write(t, w.file, two)
	w.polls(2)
	if line := w.log.Until(t, "because"); !strings.Contains(line, "policy reloaded") {
		t.Error(line)
	}
	if r, _ := get(t, w.url); r.Header.Get("RateLimit") != `"two";r=0;t=10` {
		t.Error(r.Header)
	}
	if !strings.Contains(scrape(t, w.Proxy), "tb_policy_last_reload_successful 1") {
		t.Error(scrape(t, w.Proxy))
	}
}

// A policy with errors is not put in force, and the log has every error.
func TestReloadOfABadPolicy(t *testing.T) {
	w := watch(t, two, file(t, two), func(http.ResponseWriter, *http.Request) {})
	write(t, w.file, `{"rules": [{"name": "a", "limit_keys": [], "typo": 1,
		"algorithm_config": {"tokens_per_second": 10, "burst": 5}}]}`)
	w.polls(2)
	got := w.log.Until(t, "typo")
	want := `level=ERROR msg="policy rejected: the previous one stays in force" file=FILE ` +
		`because="the file changed" errors=2
level=ERROR msg=policy file=FILE error="rules[0].algorithm_config.burst must be >= ` +
		`tokens_per_second (got 5, want >= 10)"
level=ERROR msg=policy file=FILE error="rules[0].typo is an unknown field"`
	if got = strings.ReplaceAll(got, w.file, "FILE"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r, _ := get(t, w.url); r.Header.Get("RateLimit") != `"two";r=1;t=10` {
		t.Error(r.Header)
	}
	metrics := scrape(t, w.Proxy)
	for _, want := range []string{"tb_policy_last_reload_successful 0",
		`tb_policy_reloads_total{outcome="rejected"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	w.polls(3)
	if n := len(w.log.Lines); n > 0 {
		t.Errorf("the errors are logged again: %s", <-w.log.Lines)
	}
}

// A file system that does not answer stops neither the proxy nor the reloads after it.
func TestReloadOfAFileThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := testkit.NewTranscript()
		p, err := New(Config{Upstream: &url.URL{}, Log: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		hang := make(chan struct{})
		var reads atomic.Int64
		w := newReloader(p, "policy.json").Watcher(func() (string, error) {
			if reads.Add(1) == 1 {
				<-hang
			}
			return two, nil
		}, "")
		ctx, cancel := context.WithCancel(t.Context())
		signals, ticks := make(chan os.Signal, 1), make(chan time.Time)
		ended := make(chan struct{})
		go func() {
			w.Run(ctx, signals, ticks)
			close(ended)
		}()
		signals <- syscall.SIGHUP
		time.Sleep(2 * daemon.Patience)
		if line := log.Until(t, "does not answer"); !strings.Contains(line, "policy rejected") {
			t.Error(line)
		}
		close(hang)
		if line := log.Until(t, "policy reloaded"); !strings.Contains(line, "because=SIGHUP") {
			t.Error(line)
		}
		ticks <- time.Now()
		ticks <- time.Now()
		synctest.Wait() // a read that is under way would outlive run
		cancel()
		<-ended
		if len(log.Lines) > 0 {
			t.Error(<-log.Lines)
		}
		ctx, cancel = context.WithCancel(t.Context())
		hang = make(chan struct{}) // no read is under way
		reads.Store(0)
		signals <- syscall.SIGHUP
		ended = make(chan struct{})
		go func() {
			w.Run(ctx, signals, ticks)
			close(ended)
		}()
		synctest.Wait()
		cancel()
		<-ended // although the read hangs
		close(hang)
	})
}
