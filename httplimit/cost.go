package httplimit

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
)

func (c *Cost) fixed() bool { return c.Source == "" || c.Source == "fixed" }

// cost returns what a request costs if it does not say.
func (c *Cost) cost() float64 {
	cost := c.Default
	if c.fixed() {
		cost = c.Fixed
	}
	if cost == 0 {
		return 1
	}
	return cost
}

// pricing is a Cost made ready to be read from requests.
type pricing struct {
	header, query     string // at most one of them
	fallback          float64
	smallest, largest float64
}

func newPricing(c Cost) pricing {
	p := pricing{fallback: c.cost(), smallest: c.Min, largest: c.Max}
	if p.largest == 0 {
		p.largest = math.MaxFloat64
	}
	kind, name, _ := strings.Cut(c.Source, ":")
	switch kind {
	case "header":
		p.header = http.CanonicalHeaderKey(name)
	case "query":
		p.query = name
	}
	return p
}

// of returns what the request costs.
func (p *pricing) of(r *http.Request) float64 {
	var text string
	switch {
	case p.header != "":
		if lines := r.Header[p.header]; len(lines) == 1 {
			text = lines[0]
		}
	case p.query != "":
		if v, n := queryValue(r.URL.RawQuery, p.query); n == 1 {
			text = v
		}
	}
	if text == "" {
		return p.fallback
	}
	cost, ok := parseCost(text)
	if !ok {
		return p.fallback
	}
	return min(max(cost, p.smallest), p.largest)
}

// longestCost is the length of the longest number that is read as a cost: more than the
// longest that a float64 can be written with, and little work.
const longestCost = 1024

// parseCost reads a positive finite decimal number. One that is too small for a float64
// is not 0 but the smallest there is.
func parseCost(s string) (float64, bool) {
	if len(s) > longestCost || strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	cost, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), cost < 0, math.IsInf(cost, 0):
		return 0, false
	case cost == 0:
		mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
		return math.SmallestNonzeroFloat64, s[0] != '-' && strings.ContainsAny(mantissa, "123456789")
	}
	return cost, true
}
