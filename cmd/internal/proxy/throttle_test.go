package proxy

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// A flood of refusals does not become a flood of lines, and does not hide an error of the
// upstream. The lines that are not logged are counted.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p, _ := New(Config{Upstream: &url.URL{}, Access: AccessRefused,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		check := func(records, suppressed int) {
			t.Helper()
			sum := 0
			for _, m := range regexp.MustCompile(`suppressed=(\d+)`).FindAllSubmatch(log.Bytes(), -1) {
				n, _ := strconv.Atoi(string(m[1]))
				sum += n
			}
			if n := bytes.Count(log.Bytes(), []byte("\n")); n != records || sum != suppressed {
				t.Errorf("%d records, %d suppressed, want %d and %d", n, sum, records, suppressed)
			}
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		no := httplimit.Decision{Rule: "r"}
		refuse := func() { (&responseRecorder{proxy: p, decision: no}).logAccess(r) }
		fail := func() {
			rec := &responseRecorder{ResponseWriter: httptest.NewRecorder(), proxy: p}
			p.upstreamFailed(rec, r, io.EOF)
		}
		for _, flood := range []func(){refuse, fail} {
			log.Reset()
			for range 1000 {
				flood()
			}
			check(100, 0)
		}
		time.Sleep(time.Second)
		for range 1000 {
			refuse()
			fail()
		}
		check(140, 1800)
	})
}
