package httplimit

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// lastNumber is a UsageReader of a body whose last word may be a number.
type lastNumber struct{ strings.Builder }

func (n *lastNumber) Write(b []byte) (int, error) {
	n.Builder.Write(b)
	return 0, io.ErrShortWrite // has no effect on the response
}

func (n *lastNumber) Usage() (tokens float64, ok bool) {
	words := strings.Fields(n.String())
	if len(words) == 0 {
		return 0, false
	}
	tokens, err := strconv.ParseFloat(words[len(words)-1], 64)
	return tokens, err == nil
}

// usageOfLastNumber takes an estimate from the header of the request.
func usageOfLastNumber() Option {
	return WithUsage(Usage{
		Estimate: func(r *http.Request) float64 {
			var n float64
			if json.Unmarshal([]byte(r.Header.Get("Max")), &n) != nil {
				return math.NaN()
			}
			return n
		},
		Read: func(_ *http.Request, h http.Header) UsageReader {
			if h.Get("Content-Encoding") != "" {
				return nil
			}
			return new(lastNumber)
		},
	})
}

func TestUsage(t *testing.T) {
	clock := tb.WithClock(func() time.Time { return time.Unix(1_800_000_000, 0) })
	stores := map[string][]Option{
		"memory": nil, "store": {WithStore(referenceStore{t: t, opts: []tb.Option{clock}})},
	}
	for name, c := range map[string]struct {
		lines  []string
		answer func(w http.ResponseWriter)
		during float64 // 10 is default_cost
		after  float64
	}{
		"in pieces": {nil, func(w http.ResponseWriter) {
			io.WriteString(w, "used 2")
			w.Write([]byte("5"))
		}, 10, 25},
		"estimated":    {[]string{"Max: 40"}, body("used 25"), 40, 25},
		"bounded":      {[]string{"Max: 4000"}, body("used 2500"), 60, 60},
		"no usage":     {[]string{"Max: 40"}, body("error"), 40, 40},
		"not a number": {[]string{"Max: x"}, body("used NaN"), 10, 10},
		"negative":     {[]string{"Max: -3"}, body("used -3"), 10, 10},
		"none":         {[]string{"Max: 0"}, body("error"), 10, 10},
		"free":         {nil, body("used 0"), 10, 0},
		"empty":        {nil, func(http.ResponseWriter) {}, 10, 10},
		"not to be read": {nil, func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "br") },
			10, 10},
		"copied": {nil, func(w http.ResponseWriter) {
			io.Copy(w, struct{ io.Reader }{strings.NewReader("used 33")})
		}, 10, 33},
	} {
		for place, opts := range stores {
			s := newSite(t, reporting("response:usage", `, "max_cost": 60`),
				append(opts, usageOfLastNumber())...)
			s.answer(func(w http.ResponseWriter, _ *http.Request) {
				if got := 100 - s.left(); got != c.during {
					t.Errorf("%s, %s: %v taken during the request, want %v", name, place, got, c.during)
				}
				c.answer(w)
			})
			w := &readingRecorder{ResponseRecorder: httptest.NewRecorder()}
			s.handler.ServeHTTP(w, request(c.lines...))
			if got := 100 - s.left(); got != c.after {
				t.Errorf("%s, %s: %v taken, want %v", name, place, got, c.after)
			}
		}
	}
}

// A program without the option does not accept a policy that needs it.
func TestUsageNeedsItsOption(t *testing.T) {
	p := mustParse(t, reporting("response:usage", ""))
	if _, err := New(p); err == nil ||
		!strings.Contains(err.Error(), "algorithm_config.cost_source needs the option WithUsage") {
		t.Error(err)
	}
	if _, err := New(p, WithUsage(Usage{})); err == nil {
		t.Error("a Usage without Read is accepted")
	}
}

// A request that hangs up while it waits gives its tokens back, although an earlier request of its
// bucket has settled upwards meanwhile, or a reload has changed the limit.
func TestHangUpBehindASettlement(t *testing.T) {
	for _, reload := range []bool{false, true} {
		cost := `"default_cost": 3, "cost_source": "response:usage"`
		if reload {
			cost = `"fixed_cost": 3`
		}
		rule := func(burst int) string {
			return sprintf(`{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "2s",
				"algorithm_config": {"rps": %d, "burst": %d, %s}}`, burst-3, burst, cost)
		}
		for _, opts := range [][]Option{nil, {WithStore(referenceStore{t: t})}} {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, rule(4), append(opts, usageOfLastNumber())...)
				first := make(chan struct{})
				q.handler = q.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					<-first
					body("used 5")(w)
				}))
				q.get("first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				q.send(ctx, "gone") // is to wait for 2 s
				if reload {
					if err := q.SetPolicy(mustParse(t, rule(14))); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					q.get("later") // is granted, and so moves the bucket to the new limit
				} else {
					close(first)
					synctest.Wait()
				}
				cancel()
				synctest.Wait()
				want := -1.0 // the first request has cost 5 of 4 tokens
				if reload {
					want = 4 - 3 + 11 - 3
				}
				if got := q.Explain(request())[0].Level.Tokens; got != want {
					t.Errorf("reload %t: %v tokens, want %v", reload, got, want)
				}
				if reload {
					close(first)
				}
				q.pending.Wait()
			})
		}
	}
}

func body(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { io.WriteString(w, text) }
}

// readingRecorder has the methods of net/http's writer over HTTP/1.
type readingRecorder struct {
	*httptest.ResponseRecorder
	http.Hijacker
}

func (w *readingRecorder) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(w.ResponseRecorder, r)
}
