package httplimit

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/httplimit/usage"
)

type pricing struct {
	// texts returns the costs in the request. It is nil if the cost is fixed.
	texts             func(*call) []string
	fallback          float64
	smallest, largest float64
	max               float64 // 0 if the policy has none
	inResponse        bool
	kind              string // of the source: see policy.Cost.Kind
	field             string // of the response, in canonical form; "" if the cost is not in a field
}

func newPricing(c policy.Cost) pricing {
	p := pricing{
		fallback: c.Fallback(), smallest: c.Min, largest: cmp.Or(c.Max, math.MaxFloat64), max: c.Max,
		inResponse: c.InResponse(), texts: func(*call) []string { return nil },
	}
	var name string
	switch p.kind, name = c.Kind(); p.kind {
	case policy.ResponseHeader:
		p.field = http.CanonicalHeaderKey(name)
	case "header":
		name = http.CanonicalHeaderKey(name)
		p.texts = func(c *call) []string { return listed(c.l.header(c.r, name)) }
	case "query": // some servers end it at a # or, from HTTP/2, at a space, and take ; for &
		ends := strings.NewReplacer("#", "&", " ", "&", ";", "&")
		p.texts = func(c *call) []string {
			return slices.Collect(inQuery(ends.Replace(c.r.URL.RawQuery), name))
		}
	}
	return p
}

// isNeverThere reports whether net/http removes the field from the header of a request, or a proxy
// from a response, because it is about one connection.
func isNeverThere(kind, name string) bool {
	switch name = http.CanonicalHeaderKey(name); kind {
	case "header":
		return name == "Host" || name == "Trailer" || name == "Transfer-Encoding"
	case policy.ResponseHeader:
		return slices.Contains([]string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
			"Transfer-Encoding", "Upgrade"}, name)
	}
	return false
}

// cost returns the cost of a request. A repeated cost is never less than one of its values.
func (p *pricing) cost(c *call) float64 {
	if p.kind == policy.ResponseUsage && c.l.usage.Estimate != nil {
		if tokens := c.l.usage.Estimate(c.r); tokens > 0 { // not if it is NaN
			return p.bound(tokens)
		}
	}
	texts := p.texts(c)
	if len(texts) == 0 {
		return p.fallback
	}
	cost := p.read(texts[0])
	for _, text := range texts[1:] {
		cost = max(cost, p.read(text), p.fallback, p.max)
	}
	return cost
}

func (p *pricing) read(text string) float64 {
	cost, ok := parseDecimal(text)
	if !ok || cost == 0 {
		return p.fallback
	}
	return p.bound(cost)
}

func (p *pricing) bound(cost float64) float64 { return min(max(cost, p.smallest), p.largest) }

// parseDecimal reads a decimal number of 0 or more, without a minus. A number above 0 that is too
// small for a float64 becomes the smallest float64 above 0, and one that is too large or too long
// becomes the largest, so that no client gets a smaller cost by a larger number.
func parseDecimal(s string) (number float64, ok bool) {
	const longest = 1024 // which is little work, and more than a float64 needs
	if len(s) > longest {
		return math.MaxFloat64, true
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(s, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), s[0] == '-':
		return 0, false
	case number == 0 && strings.ContainsAny(mantissa, "123456789"):
		return math.SmallestNonzeroFloat64, true
	}
	return min(number, math.MaxFloat64), true
}

// listed returns the values of a field that programs may have joined with commas, without blanks.
func listed(values []string) []string {
	text := strings.Join(values, ",")
	if !strings.ContainsAny(text, ", \t") {
		return values
	}
	all := strings.Split(text, ",")
	for i, v := range all {
		all[i] = strings.TrimFunc(v, isBlank)
	}
	return all
}

// actual returns the cost that a response reports in a field. It is the highest of several values.
// A value that is not a number counts as the estimate. actual reports false without a number.
func (p *pricing) actual(values []string) (cost float64, ok bool) {
	cost = p.smallest
	for _, text := range listed(values) {
		number, isNumber := parseDecimal(text)
		if isNumber {
			cost, ok = max(cost, p.bound(number)), true
		} else {
			cost = max(cost, p.fallback)
		}
	}
	return cost, ok
}

// Usage finds the costs of the rules whose Cost.Source is "response:usage": see WithUsage. Package
// usage has the functions for the tokens of a language model. They must be safe for concurrent use.
type Usage struct {
	// Estimate returns the tokens that a request takes until its response has ended, such as the most
	// that its body asks for. Cost.Min and Cost.Max bound them. They are Cost.Default if Estimate is
	// nil or returns no number above 0. If it reads the body, it must put one with the same bytes in
	// its place, so a handler that calls Decide, Admit or Take passes a copy of net/http's own
	// request: otherwise the rest of a body can be read as the next request.
	Estimate func(r *http.Request) float64
	// Read returns the reader of a response with this header, or nil if the response has no usage
	// that can be read.
	Read func(r *http.Request, header http.Header) UsageReader
}

// UsageReader reads the body of one response while it is written.
type UsageReader = usage.Reader

// WithUsage sets how the costs of the source "response:usage" are found. Middleware and the writer
// of Settlement.Writer read responses. After Limiter.Decide the estimate stands.
func WithUsage(u Usage) Option {
	return withValid(u.Read != nil, "WithUsage: want Read", func(s *settings) { s.usage = u })
}
