package httplimit

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
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
		{"", []string{"1e1"}, 10, true},
		{"", []string{"0"}, 0, true},
		{"", []string{"0.0e5"}, 0, true},
		{"", []string{"150"}, 150, true},
		{"", []string{"1e17"}, 200, true}, // as much as the bucket can owe
		{"", []string{"1" + strings.Repeat("0", 300)}, 200, true},
		{"", nil, 10, false},
		{"", []string{""}, 10, false},
		{"", []string{"-5"}, 10, false},
		{"", []string{"-0"}, 10, false},
		{"", []string{"many"}, 10, false},
		{"", []string{"NaN"}, 10, false},
		{"", []string{"1e999"}, 200, true},
		{"", []string{"0x10"}, 10, false},
		{"", []string{"5, 6"}, 6, true},
		{"", []string{"5, x"}, 10, true},
		{"", []string{strings.Repeat("0", 1024) + "5"}, 200, true},
		{`, "max_cost": 30`, []string{"1e309"}, 30, true},
		{"", []string{"5", "6", "4"}, 6, true},
		{"", []string{"5", "x"}, 10, true},
		{"", []string{"x", "50"}, 50, true},
		{"", []string{"x", "y"}, 10, false},
		{`, "min_cost": 3, "max_cost": 30`, []string{"1"}, 3, true},
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
	"5xx": 0, "UNAUTHENTICATED": 7, "OK": 0}`

// The ways in which a handler can end its response, with the cost of each in bytes, by a
// field that says 25, and by the status. The estimate is 10.
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
		"never writes":  {handler: nothing, byField: 25, byStatus: 1},
		"only a status": {handler: status(http.StatusTeapot), byField: 25, byStatus: 3},
		"not found":     {handler: status(http.StatusNotFound), byField: 25, byStatus: 10},
		"no content":    {handler: status(http.StatusNoContent), byField: 25, byStatus: 2},
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
			s := newSite(t, reporting(source, costs))
			s.answer(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Usage", "25")
				c.handler(w, r)
			})
			func() {
				defer func() { _ = recover() }()
				s.send(httptest.NewRequest(c.method, "/", nil))
			}()
			if got := 100 - s.left(); got != want {
				t.Errorf("%s, %s: %v tokens, want %v", name, source, got, want)
			}
			if name == "panics at once" && costs != "" { // what recovers may answer with any status
				s.settled(0, 1)
			} else {
				s.settled(1, 0)
			}
		}
	}
}

// A client that leaves before the status, or breaks its body off, pays the estimate.
func TestNoClientChoosesItsStatus(t *testing.T) {
	fail := status(http.StatusBadGateway)
	for name, c := range map[string]struct {
		handler func(w http.ResponseWriter, r *http.Request, leave func())
		cost    float64
	}{
		"stays": {func(w http.ResponseWriter, r *http.Request, _ func()) { fail(w, r) }, 0},
		"leaves": {func(w http.ResponseWriter, r *http.Request, leave func()) {
			leave()
			fail(w, r)
		}, 10},
		"leaves a silent handler": {func(_ http.ResponseWriter, _ *http.Request, leave func()) {
			leave()
		}, 10},
		"leaves after the status": {func(w http.ResponseWriter, r *http.Request, leave func()) {
			fail(w, r)
			leave()
		}, 0},
		"breaks its body off": {func(w http.ResponseWriter, r *http.Request, _ func()) {
			if _, err := io.ReadAll(r.Body); err != nil {
				fail(w, r)
			}
		}, 10},
	} {
		s := newSite(t, reporting("response:status", statusCosts))
		ctx, leave := context.WithCancel(t.Context())
		s.answer(func(w http.ResponseWriter, r *http.Request) { c.handler(w, r, leave) })
		r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(io.ErrUnexpectedEOF))
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
	var none *Settlement
	none.ReadStatus("200")
	none.Abandon()
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func write(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, n)) }
}
