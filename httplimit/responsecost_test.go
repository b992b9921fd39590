package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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

// The ways in which a handler can end its response, with the cost of each in bytes and by a field
// that says 25. The estimate is 10.
func TestResponsesThatSettle(t *testing.T) {
	for name, c := range map[string]struct {
		handler        http.HandlerFunc
		method         string
		bytes, byField float64
	}{
		"writes": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 30))
			w.Write(make([]byte, 3))
		}, bytes: 33, byField: 25},
		"writes a string": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.(interface{ WriteString(string) (int, error) }).WriteString("12345678")
		}, bytes: 8, byField: 25},
		"never writes":  {handler: nothing, byField: 25},
		"only a status": {handler: status(http.StatusTeapot), byField: 25},
		"no content":    {handler: status(http.StatusNoContent), byField: 25},
		"not modified":  {handler: status(http.StatusNotModified), byField: 25},
		"an error":      {handler: status(http.StatusBadGateway), byField: 25},
		"informational": {handler: status(http.StatusEarlyHints), byField: 25},
		"continues": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusContinue)
			w.Header().Set("X-Usage", "26")
		}, byField: 26},
		"switches protocols": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusSwitchingProtocols)
			w.Header().Set("X-Usage", "26") // too late
		}, byField: 25},
		"HEAD with body": {handler: write(40), method: http.MethodHead, byField: 25},
		"aborts": {handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Write(make([]byte, 40))
			panic(http.ErrAbortHandler)
		}, bytes: 40, byField: 25},
		"panics at once": {handler: func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, byField: 25},
	} {
		for source, want := range map[string]float64{
			"response:bytes": c.bytes, "response:header:x-usage": c.byField,
		} {
			s := newSite(t, reporting(source, ""))
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
			s.settled(1, 0)
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func write(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, n)) }
}
