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
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/usage"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestCostReportedInTheResponse(t *testing.T) {
	for _, c := range []struct {
		bounds string
		values []string
		cost   float64 // 10 is the estimate
		known  bool
	}{
		{"", []string{"25"}, 25, true},
		{"", []string{"2.5"}, 2.5, true},
		{"", []string{"0"}, 0, true},
		{"", []string{"150"}, 150, true},
		{"", []string{"1e17"}, 200, true}, // as much as the bucket can owe
		{"", nil, 10, false},
		{"", []string{""}, 10, false},
		{"", []string{"many"}, 10, false},
		{"", []string{"5, 6"}, 6, true},
		{"", []string{"5, x"}, 10, true},
		{`, "max_cost": 30`, []string{"1e309"}, 30, true},
		{"", []string{"5", "1, 6", "4"}, 6, true},
		{"", []string{"5", "x"}, 10, true},
		{"", []string{"x", "50"}, 50, true},
		{"", []string{"x", "y"}, 10, false},
		{`, "min_cost": 3, "max_cost": 30`, []string{"0"}, 3, true},
		{`, "min_cost": 3, "max_cost": 30`, []string{"20"}, 20, true},
		{`, "min_cost": 3, "max_cost": 30`, []string{"31"}, 30, true},
		{`, "min_cost": 30`, []string{"x"}, 10, false},
	} {
		s := newSite(t, reporting("response:header:x-usage", c.bounds))
		s.answer(func(w http.ResponseWriter, _ *http.Request) {
			if s.left() != 90 {
				t.Errorf("%v left during the request, want 90", s.left())
			}
			w.Header()["X-Usage"] = c.values
			w.WriteHeader(http.StatusOK)
			w.Header()["X-Usage"] = []string{"99"} // too late
		})
		w := s.get()
		if got := 100 - s.left(); got != c.cost {
			t.Errorf("%.50q costs %v, want %v", c.values, got, c.cost)
		}
		if got := w.Result().Header["X-Usage"]; len(got) != len(c.values) {
			t.Errorf("the client got %q, want %q", got, c.values)
		}
		if c.known {
			s.settled(1, 0)
		} else {
			s.settled(0, 1)
		}
	}
}

const statusCosts = `, "status_costs": {"200": 1, "2xx": 2, "418": 3, "3xx": 0.25, "1xx": 5,
	"5xx": 0, "UNAUTHENTICATED": 7, "OK": 0, "401": 12, "499": 12}`

// The ways in which a handler can end its response, with the cost of each in bytes, by a field that
// says 25, and by the status. The estimate is 10. The writer is as of HTTP/1 or of HTTP/2.
func TestResponsesThatSettle(t *testing.T) {
	for name, c := range map[string]struct {
		handler  http.HandlerFunc
		method   string
		bytes    float64
		byField  float64
		byStatus float64
	}{
		"writes": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 30))
			w.Write(make([]byte, 3))
		}, bytes: 33, byField: 25, byStatus: 1},
		"copies": {handler: func(w http.ResponseWriter, _ *http.Request) {
			n, _ := io.Copy(w, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 600))})
			w.Header().Set("X-Usage", "26") // too late
			w.Write(make([]byte, n-599))
		}, bytes: 601, byField: 25, byStatus: 1},
		"copies at once": {handler: func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, struct{ io.Reader }{strings.NewReader("x")})
			w.Header().Set("X-Usage", "26") // too late
		}, bytes: 1, byField: 25, byStatus: 1},
		"cannot copy": {handler: func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(w, iotest.ErrReader(io.ErrClosedPipe)); err != nil {
				status(http.StatusTeapot)(w, r)
			}
		}, byField: 25, byStatus: 3},
		"flushes": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Header().Set("X-Usage", "26") // too late
			w.Header().Set(http.TrailerPrefix+"X-Usage", "27")
			io.WriteString(w, "body")
		}, bytes: 4, byField: 25, byStatus: 1},
		"never writes":  {handler: nothing, byField: 25, byStatus: 1},
		"only a status": {handler: status(http.StatusTeapot), byField: 25, byStatus: 3},
		"not modified":  {handler: status(http.StatusNotModified), byField: 25, byStatus: 0.25},
		"an error":      {handler: status(http.StatusBadGateway), byField: 25, byStatus: 0},
		"informational": {handler: status(http.StatusEarlyHints), byField: 25, byStatus: 1},
		"continues": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusContinue)
			w.Header().Set("X-Usage", "26")
		}, byField: 26, byStatus: 1},
		"switches protocols": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusSwitchingProtocols)
			w.Header().Set("X-Usage", "26") // too late
		}, byField: 25, byStatus: 5},
		"HEAD with body": {handler: write(40), method: http.MethodHead, byField: 25, byStatus: 1},
		"aborts": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 40))
			panic(http.ErrAbortHandler)
		}, bytes: 40, byField: 25, byStatus: 1},
		"panics at once": {handler: func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, byField: 25, byStatus: 10},
	} {
		for source, want := range map[string]float64{
			"response:bytes": c.bytes, "response:header:x-usage": c.byField, "response:status": c.byStatus,
		} {
			costs := ""
			if source == "response:status" {
				costs = statusCosts
			}
			for _, w := range []http.ResponseWriter{
				httptest.NewRecorder(), &readingRecorder{ResponseRecorder: httptest.NewRecorder()},
			} {
				s := newSite(t, reporting(source, costs))
				s.answer(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Usage", "25")
					c.handler(w, r)
				})
				func() {
					defer func() { _ = recover() }()
					s.handler.ServeHTTP(w, httptest.NewRequest(c.method, "/", nil))
				}()
				if got := 100 - s.left() + s.Stats()[0].Table.Unpaid; got != want {
					t.Errorf("%s, %s, %T: %v tokens, want %v", name, source, w, got, want)
				}
				if name == "panics at once" && costs != "" { // what recovers may answer with any status
					s.settled(0, 1)
				} else {
					s.settled(1, 0)
				}
			}
		}
	}
}

// A client that leaves before the status, or breaks its body off, pays the estimate, or more if the
// status costs more: it may read the answer, unless that is 499. No read after a Close counts.
func TestNoClientChoosesItsStatus(t *testing.T) {
	fail := status(http.StatusBadGateway)
	readAndAnswer := func(code int) func(http.ResponseWriter, *http.Request, func()) {
		return func(w http.ResponseWriter, r *http.Request, _ func()) {
			_, _ = r.Body.Read(make([]byte, 1))
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		handler func(w http.ResponseWriter, r *http.Request, leave func())
		body    error
		cost    float64
	}{
		"stays": {func(w http.ResponseWriter, r *http.Request, _ func()) { fail(w, r) }, nil, 0},
		"leaves": {func(w http.ResponseWriter, r *http.Request, leave func()) {
			leave()
			fail(w, r)
		}, nil, 10},
		"leaves a silent handler": {func(_ http.ResponseWriter, _ *http.Request, leave func()) {
			leave()
		}, nil, 10},
		"leaves after the status": {func(w http.ResponseWriter, r *http.Request, leave func()) {
			fail(w, r)
			leave()
		}, nil, 0},
		"breaks its body off":   {readAndAnswer(502), io.ErrUnexpectedEOF, 10},
		"breaks off a guess":    {readAndAnswer(401), io.ErrUnexpectedEOF, 12},
		"breaks off, unread":    {readAndAnswer(499), io.ErrUnexpectedEOF, 10},
		"sends all of its body": {readAndAnswer(502), io.EOF, 0},
		"is answered earlier":   {readAndAnswer(502), http.ErrBodyReadAfterClose, 0},
		"is read after Close": {func(w http.ResponseWriter, r *http.Request, _ func()) {
			_ = r.Body.Close()
			readAndAnswer(502)(w, r, nil)
		}, io.ErrClosedPipe, 0},
	} {
		s := newSite(t, reporting("response:status", statusCosts))
		ctx, leave := context.WithCancel(t.Context())
		s.answer(func(w http.ResponseWriter, r *http.Request) { c.handler(w, r, leave) })
		r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(c.body))
		s.send(r.WithContext(ctx))
		if got := 100 - s.left(); got != c.cost {
			t.Errorf("a client that %s costs %v, want %v", name, got, c.cost)
		}
	}
}

// A server that writes no http.ResponseWriter names the status, of which the first counts.
func TestStatusOfAnotherServer(t *testing.T) {
	reads := func(status string) func(*Settlement) {
		return func(s *Settlement) { s.ReadStatus(status) }
	}
	for _, c := range []struct {
		end  func(*Settlement)
		cost float64
	}{
		{reads("418"), 3}, {reads("299"), 2}, {reads("404"), 10}, {reads("OK"), 0}, {reads(""), 10},
		{reads("UNAUTHENTICATED"), 7}, {reads("UNAVAILABLE"), 10}, {func(*Settlement) {}, 10},
		{func(s *Settlement) { s.ReadStatus("418"); s.ReadStatus("200") }, 3},
		{func(s *Settlement) { s.ReadStatus("418"); s.Cancel() }, 0},
		{func(s *Settlement) { s.ReadStatus("418"); s.Abandon() }, 3},
		{func(s *Settlement) { s.Abandon(); s.ReadStatus("418") }, 10},
		{func(s *Settlement) { s.Writer(httptest.NewRecorder()) }, 10}, // no answer yet
	} {
		s := newSite(t, reporting("response:status", statusCosts))
		_, settlement, _ := s.Take(nil, request())
		c.end(settlement)
		settlement.Finish()
		if got := 100 - s.left(); got != c.cost {
			t.Errorf("%v tokens, want %v", got, c.cost)
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func write(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, n)) }
}

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
			io.Copy(w, struct{ io.Reader }{strings.NewReader(sprintf("used %600d", 33))})
		}, 10, 33},
	} {
		for place, opts := range stores {
			policy := jsonRules("", reporting("response:usage", `, "max_cost": 60`),
				jsonRule("plain", "[]", 100, ""))
			s := newSite(t, policy, append(opts, usageOfLastNumber())...)
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
			if e := s.Explain(request()); e[1].Level.Tokens != 99 {
				t.Errorf("%s, %s: the rule without usage has %v", name, place, e[1].Level.Tokens)
			}
		}
	}
}

// What a handler leaves of a body that Estimate has begun to read is not the next request.
func TestRestOfABody(t *testing.T) {
	l := mustNew(t, reporting("response:usage", ""),
		WithUsage(Usage{Estimate: usage.Estimate, Read: usage.Read}))
	server := httptest.NewServer(l.Middleware(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() })))
	defer server.Close()
	w, err := http.Post(server.URL, "", strings.NewReader(strings.Repeat(" ", 2<<20)))
	if err != nil || !w.Close {
		t.Errorf("%v, %v: want the connection to be closed", w, err)
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

// Requests that hang up while they wait, the last one first, give their tokens back, also to a rule
// that does not delay, although an earlier request of the bucket has settled upwards meanwhile, or
// a reload has changed the limit.
func TestHangUpBehindASettlement(t *testing.T) {
	for _, reload := range []bool{false, true} {
		cost := `"default_cost": 3, "cost_source": "response:usage"`
		if reload {
			cost = `"fixed_cost": 3`
		}
		rule := func(rps, burst int) string {
			return jsonRules("", sprintf(`{"name": "r", "limit_keys": [], "on_limit": "delay",
				"max_delay": "4s", "algorithm_config": {"rps": %d, "burst": %d, %s}}`, rps, burst, cost),
				sprintf(`{"name": "plain", "limit_keys": [], "algorithm_config": {"rps": 2, "burst": 100,
					%s}}`, cost))
		}
		for _, opts := range [][]Option{nil, {WithStore(referenceStore{t: t})}} {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, rule(1, 5), append(opts, usageOfLastNumber())...)
				first := make(chan struct{})
				q.handler = q.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					<-first
					body("used 4")(w)
				}))
				q.get("first")
				ctx, hangUp := context.WithCancel(t.Context())
				q.send(ctx, "gone") // is to wait for 1 s
				last, hangUpLast := context.WithCancel(t.Context())
				q.send(last, "gone") // for 4 s
				if reload {
					if err := q.SetPolicy(mustParse(t, rule(20, 20))); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second / 2)
					q.get("later") // is granted, and so moves the bucket to the new limit
				} else {
					close(first)
					synctest.Wait()
				}
				hangUpLast()
				synctest.Wait()
				hangUp()
				synctest.Wait()
				want := []float64{5 - 4, 100 - 4}
				if reload {
					want = []float64{5 - 3 + 10 - 3, 100 - 3 + 1 - 3}
				}
				for i, e := range q.Explain(request()) {
					if e.Level.Tokens != want[i] {
						t.Errorf("reload %t: %v tokens, want %v", reload, e.Level.Tokens, want[i])
					}
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
