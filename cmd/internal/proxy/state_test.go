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
	"strings"
	"testing"
	"time"
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
