package proxy

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
)

// A response that a stop cuts off is settled before the state is saved: its bytes are paid after a
// restart, too.
func TestStateHasTheCostOfResponsesThatAreCutOff(t *testing.T) {
	for range 5 {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat("x", 90))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		name := filepath.Join(t.TempDir(), "state")
		p := run(t, func(c *Command) {
			u, _ := url.Parse(upstream.URL)
			c.Upstream.URL, c.Policy, c.State = *u, file(t, usage("response:bytes")), name
			c.Shutdown = time.Millisecond
		})
		r, err := http.Get(p.proxy)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 90)); err != nil {
			t.Error(err)
		}
		_ = p.Stop()
		r.Body.Close()
		upstream.Close()
		text, err := readState(name)
		_, rest, _ := strings.Cut(string(text), `"tokens":`)
		tokens := 0.0
		if _, scan := fmt.Sscan(rest, &tokens); err != nil || scan != nil || tokens > 50 {
			t.Errorf("%v, %v, want 10 tokens\n%s", err, scan, text)
		}
	}
}

// readState returns the lines of a state.
func readState(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(lines)
}

// A key that is blocked is on the page, and is reset by the key in the log and on the page, which
// is a hash, in memory and in Redis.
func TestResetByTheKeyOfTheLog(t *testing.T) {
	policy := file(t, `{"name": "slow", "limit_keys": ["header:x-key"], "block": "1h",
		"algorithm_config": {"tokens_per_second": 0.0001, "burst": 1}}`)
	memory := run(t, func(c *Command) { c.Policy = policy })
	shared := runShared(t, redistest.Start(t).Addr, func(c *Command) { c.Policy = policy })
	for _, p := range []*running{memory, shared} {
		for _, want := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusOK} {
			if resp, _ := get(t, p.proxy, "X-Key", "a b"); resp.StatusCode != want {
				t.Fatalf("status %d, want %d", resp.StatusCode, want)
			}
			if want == http.StatusOK {
				continue
			}
			_, key, _ := strings.Cut(p.Log.Until(t, "header:x-key="), `key="`)
			key, _, _ = strings.Cut(key, `"`)
			held := regexp.MustCompile(`"held":3(600|59\d)[.,}]`)
			if _, state := get(t, p.admin+"/api/state"); !held.MatchString(state) {
				t.Errorf("not held for an hour: %s", state)
			}
			form := url.Values{"rule": {"slow"}, "key": {key}}
			resp, err := http.PostForm(p.admin+"/api/reset", form)
			if err != nil || resp.StatusCode != http.StatusNoContent {
				t.Fatalf("%q: %v, %v", key, resp, err)
			}
			resp.Body.Close()
		}
	}
}
