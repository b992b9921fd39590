package httplimit

import (
	"math"
	"net/http"
	"strings"
	"testing"
)

func (s *site) costs(r *http.Request) float64 {
	s.t.Helper()
	e := s.Explain(r)
	if len(e) != 1 {
		s.t.Fatalf("%+v", e)
	}
	return e[0].Cost
}

var costs = []struct {
	text string
	want float64 // 0.25 is default_cost
}{
	{"5", 5},
	{"0.001", 0.001},
	{".5", 0.5},
	{"1e2", 100},
	{"+3", 3},
	{"007", 7},
	{"", 0.25},
	{" ", 0.25},
	{"abc", 0.25},
	{"5 apples", 0.25},
	{"5,6", 6}, // a repeated field whose values a proxy has joined
	{"5, x", 5},
	{",", 0.25},
	{"1_000", 0.25},
	{"٣", 0.25},
	{"0", 0.25},
	{"-1", 0.25},
	{"-0", 0.25},
	{"0e9", 0.25},
	{"-1e-999", 0.25},
	{"-1e999", 0.25},
	{"NaN", 0.25},
	{"+Inf", 0.25},
	{"infinity", 0.25},
	{"1e309", math.MaxFloat64},
	{strings.Repeat("9", 400), math.MaxFloat64},
	{"0x10", 0.25},
	{"0X1p4", 0.25},
	{"e5", 0.25},
	{"1e", 0.25},
	{"1.2.3", 0.25},
	{"--5", 0.25},
	{"1" + strings.Repeat("0", 99), 1e99},
	{"0." + strings.Repeat("0", 998) + "5e999", 5},
	{strings.Repeat("0", 1023) + "5", 5},
	{strings.Repeat("0", 1024) + "5", math.MaxFloat64}, // too long to be read
	{strings.Repeat("x", 1025), math.MaxFloat64},
}

func TestCostFromHeader(t *testing.T) {
	s := newSite(t, oneRule("[]",
		`"rps": 1, "burst": 9, "cost_source": "header:x-request-weight", "default_cost": 0.25`))
	for _, c := range costs {
		r := request()
		r.Header["X-Request-Weight"] = []string{c.text}
		if got := s.costs(r); got != c.want {
			t.Errorf("%q costs %v, want %v", c.text, got, c.want)
		}
	}
	if got := s.costs(request()); got != 0.25 {
		t.Errorf("absent costs %v", got)
	}
	if got := s.costs(request("X-Request-Weight: 5", "X-Request-Weight: 5")); got != 5 {
		t.Errorf("repeated costs %v", got)
	}
}

func TestMinAndMaxBoundTheCost(t *testing.T) {
	s := newSite(t, oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "header:w",
		"default_cost": 0.25, "min_cost": 0.5, "max_cost": 5`))
	for text, want := range map[string]float64{
		"0.1": 0.5, "1e-999": 0.5, "0.5": 0.5, "3": 3, "5": 5, "6": 5, "1e300": 5, "1e309": 5, "x": 0.25,
		strings.Repeat("9", 400): 5, strings.Repeat("9", 4000): 5, "3, 1": 5,
	} {
		if got := s.costs(request("W: " + text)); got != want {
			t.Errorf("%q costs %v, want %v", text, got, want)
		}
	}
}

func TestCostFromQuery(t *testing.T) {
	s := newSite(t, oneRule("[]",
		`"rps": 1, "burst": 9, "cost_source": "query:w", "default_cost": 0.25, "max_cost": 8`))
	for query, want := range map[string]float64{
		"w=5": 5, "x=1&%77=2.5&y": 2.5, "w=99#x": 8, "w=": 0.25, "W=5": 0.25, "w=5&w=3": 8, "": 0.25,
		"w=5 x": 5, "x;w=5": 5,
	} {
		if got := s.costs(request("/?" + query)); got != want {
			t.Errorf("%q: costs %v, want %v", query, got, want)
		}
	}
	r := request("/?w=5")
	if w := s.send(r); w.Code != http.StatusOK || w.Header().Get("RateLimit-Remaining") != "4" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	if w := s.send(r); w.Code != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", w.Code)
	}
}
