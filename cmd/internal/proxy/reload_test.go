package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// A policy that is accepted keeps the tokens, and touches no response under way. Of one that is
// not, the log has each error, and the metrics its number.
func TestReload(t *testing.T) {
	more := make(chan struct{})
	log := testkit.NewTranscript()
	p, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "before")
		_ = http.NewResponseController(w).Flush()
		<-more
		fmt.Fprintln(w, "after")
	}, func(c *Config) { c.Log = log.Logger() })
	stream, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Scan()

	name, signals := file(t, two), make(chan os.Signal)
	go p.Limiter.Follow(t.Context(), httplimit.PolicyFile{
		Name: name, Text: two, Signals: signals,
		Reloaded: func(x httplimit.Reload) { p.reloaded(newReloader(p, "FILE"), x) },
	})
	write(t, name, `{"rules": [{"name": "a", "limit_keys": [], "typo": 1,
		"algorithm_config": {"tokens_per_second": 10, "burst": 5}}]}`)
	signals <- syscall.SIGHUP
	for _, want := range []string{
		`msg="policy rejected: the previous one stays in force" file=FILE because=SIGHUP errors=2`,
		`error="rules[0].algorithm_config.burst must be >= tokens_per_second (got 5, want >= 10)"`,
		`error="rules[0].typo is an unknown field"`,
	} {
		log.Until(t, want)
	}
	write(t, name, strings.Replace(two, `"burst": 2`, `"burst": 1`, 1))
	signals <- syscall.SIGHUP
	log.Until(t, `msg="policy reloaded" file=FILE because=SIGHUP rules=1`)
	close(more)
	if lines.Scan(); lines.Text() != "after" {
		t.Errorf("the stream was cut off: %q, %v", lines.Text(), lines.Err())
	}
	for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if r, _ := get(t, url); r.StatusCode != status {
			t.Errorf("%s, want %d", r.Status, status)
		}
	}
	metrics := scrape(t, p)
	for _, want := range []string{
		"tb_policy_last_reload_successful 1", "tb_upstream_header_seconds_count 2",
		`tb_policy_reloads_total{outcome="rejected"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}
