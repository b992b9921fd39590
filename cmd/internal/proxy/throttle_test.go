package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// countingHandler counts the records that reach it and adds up their suppressed attributes.
type countingHandler struct {
	slog.Handler
	mu                  sync.Mutex
	records, suppressed uint64
}

func (c *countingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (c *countingHandler) Handle(_ context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records++
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "suppressed" {
			c.suppressed += a.Value.Uint64()
		}
		return true
	})
	return nil
}

// A flood of refusals does not become a flood of lines, and does not hide an error of the
// upstream. The lines that are not logged are counted.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingHandler{Handler: slog.DiscardHandler}
		p, err := New(Config{Upstream: &url.URL{}, Log: slog.New(c), Access: AccessRefused})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		no := httplimit.Decision{Rule: "r"}
		refuse := func() { (&responseRecorder{proxy: p, decision: no}).logAccess(r) }
		fail := func() {
			rec := &responseRecorder{ResponseWriter: httptest.NewRecorder(), proxy: p}
			p.upstreamFailed(rec, r, io.EOF)
		}
		for _, flood := range []func(){refuse, fail} {
			*c = countingHandler{Handler: c.Handler}
			for range 1000 {
				flood()
			}
			if c.records != 100 || c.suppressed != 0 {
				t.Errorf("%d records, %d suppressed, want 100 and 0", c.records, c.suppressed)
			}
		}
		time.Sleep(time.Second)
		for range 1000 {
			refuse()
			fail()
		}
		if c.records != 140 || c.suppressed != 1800 {
			t.Errorf("%d records, %d suppressed, want 140 and 1800", c.records, c.suppressed)
		}
	})
}
