package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// rules is a policy of two ladders of a slow rule each.
func rules(burst int) string {
	return fmt.Sprintf(`{"rules": [
		{"name": "kept", "limit_keys": ["header:x-a"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": 2}},
		{"name": "changed", "limit_keys": ["header:x-b"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": %d}}]}`, burst)
}

// watched starts a proxy whose policy is that of a file.
func watched(t *testing.T, policy string, upstream http.HandlerFunc) (
	p *Proxy, url, name string, log *transcript, hangups chan os.Signal) {
	t.Helper()
	log, name = newTranscript(), file(t, policy)
	p, url, _ = start(t, policy, upstream, func(c *Config) { c.Log = log.logger() })
	hangups = make(chan os.Signal)
	l := &reloader{proxy: p, file: name, data: []byte(policy)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(t.Context(), hangups)
	}()
	t.Cleanup(func() { <-done }) // after the end of the context
	hangups <- syscall.SIGHUP    // is received when the file is being watched
	log.until(t, "because=SIGHUP")
	return p, url, name, log, hangups
}

// A change of one rule reaches neither the buckets of another nor a response under way.
func TestReload(t *testing.T) {
	more := make(chan struct{})
	p, url, name, log, _ := watched(t, rules(1), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			fmt.Fprintln(w, "before")
			_ = http.NewResponseController(w).Flush()
			<-more
			fmt.Fprintln(w, "after")
		}
	})
	statuses := func(header string) (all string) {
		for range 4 {
			r, _ := get(t, url, header, "k")
			all += fmt.Sprint(r.StatusCode, " ")
		}
		return all
	}
	if got := statuses("X-A") + statuses("X-B"); got != "200 200 429 429 200 429 429 429 " {
		t.Fatal(got)
	}
	stream, err := http.Get(url + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Scan()

	// As editors do it: a new file takes the place of the old one.
	next := filepath.Join(t.TempDir(), "next")
	write(t, next, rules(3))
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
	log.until(t, "policy reloaded")
	if got := statuses("X-A") + statuses("X-B"); got != "429 429 429 429 200 200 200 429 " {
		t.Error(got)
	}
	close(more)
	if lines.Scan(); lines.Text() != "after" {
		t.Errorf("the stream was cut off: %q, %v", lines.Text(), lines.Err())
	}
	if s := p.Limiter.Stats()[0]; s.Granted != 2 || s.Refused != 6 {
		t.Errorf("counts of the kept rule: %+v", s)
	}
}

// The file may be a link to another directory, in which it is written.
func TestReloadBehindALink(t *testing.T) {
	log, target := newTranscript(), file(t, rules(1))
	p, _, _ := start(t, rules(1), nil, func(c *Config) { c.Log = log.logger() })
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	l := &reloader{proxy: p, file: link, data: []byte(rules(1))}
	hangups := make(chan os.Signal)
	go l.run(t.Context(), hangups)
	hangups <- syscall.SIGHUP
	log.until(t, "because=SIGHUP")
	write(t, target, rules(3))
	log.until(t, `because="the file changed"`)
}

// A policy with errors is not put in force, and every error is told.
func TestReloadOfABadPolicy(t *testing.T) {
	p, url, name, log, hangups := watched(t, two, func(http.ResponseWriter, *http.Request) {})
	write(t, name, `{"rules": [{"name": "a", "limit_keys": [], "typo": 1,
		"algorithm_config": {"tokens_per_second": 10, "burst": 5}}]}`)
	got := log.until(t, "typo")
	want := `level=ERROR msg="policy rejected: the one before stays in force" file=FILE ` +
		`because="the file changed" errors=2
level=ERROR msg=policy file=FILE error="rules[0].algorithm_config.burst: must be >= ` +
		`tokens_per_second (got 5, want >= 10)"
level=ERROR msg=policy file=FILE error="rules[0].typo: unknown field"`
	if got = strings.ReplaceAll(got, name, "FILE"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r, _ := get(t, url); r.Header.Get("RateLimit") != `"two";r=1;t=10` {
		t.Error(r.Header)
	}
	metrics := scrape(t, p)
	for _, want := range []string{"tb_policy_last_reload_successful 0",
		`tb_policy_reloads_total{outcome="rejected"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	hangups <- syscall.SIGHUP
	log.until(t, "no such file")
	if r, _ := get(t, url); r.Header.Get("RateLimit") == "" {
		t.Error("the policy is gone with its file")
	}
}
