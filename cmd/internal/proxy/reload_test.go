package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
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

	r := newReloader(p, "FILE")
	err = r.Put(daemon.Content{Text: `{"rules": [{"name": "a", "limit_keys": [], "typo": 1,
		"algorithm_config": {"tokens_per_second": 10, "burst": 5}}]}`}, "a test")
	const want = `rules[0].algorithm_config.burst must be >= tokens_per_second (got 5, want >= 10)
rules[0].typo is an unknown field`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	next := strings.Replace(two, `"burst": 2`, `"burst": 1`, 1)
	if err := r.Put(daemon.Content{Text: next}, "a test"); err != nil {
		t.Error(err)
	}
	if line := log.Until(t, "reloaded"); !strings.HasSuffix(line,
		`msg="policy reloaded" file=FILE because="a test" rules=1`) {
		t.Error(line)
	}
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
	for _, want := range []string{"tb_policy_last_reload_successful 1",
		`tb_policy_reloads_total{outcome="rejected"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}
