package httplimit

import (
	"net/http"
	"strings"
)

// responseCost is where the cost of a request is in its response. The zero responseCost is of a
// rule that has its cost in the request.
type responseCost struct {
	inResponse bool
	field      string // in canonical form; "" if the cost is the bytes of the body
	hidden     bool   // the field is kept from the client
}

func newResponseCost(c *Cost) responseCost {
	source, ok := strings.CutPrefix(c.Source, "response:")
	field, _ := strings.CutPrefix(source, "header:")
	if !ok || source == "bytes" {
		return responseCost{inResponse: ok}
	}
	return responseCost{true, http.CanonicalHeaderKey(field), c.HideHeader}
}

// isCostSource reports whether a text is a cost_source.
func isCostSource(source string) bool {
	if source == "fixed" || source == "response:bytes" {
		return true
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(source, "response:"), ":")
	return partName.MatchString(name) &&
		(kind == "header" || kind == "query" && !strings.HasPrefix(source, "response:"))
}

// actual returns the cost that a response reports in a field. It is the highest of several values.
// A value that is not a number counts as the estimate. actual reports false without a number.
func (p *pricing) actual(values []string) (cost float64, ok bool) {
	cost = p.smallest
	for _, text := range values {
		number, isNumber := parseDecimal(text)
		if isNumber {
			cost, ok = max(cost, p.bound(number)), true
		} else {
			cost = max(cost, p.fallback)
		}
	}
	return cost, ok
}

// declaresTrailer reports whether a header declares a trailer field.
func declaresTrailer(h http.Header, field string) bool {
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if isField(name, field) {
				return true
			}
		}
	}
	return false
}

// hideTrailer removes the declaration of a trailer field from a header.
func hideTrailer(h http.Header, field string) {
	var others []string
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if !isField(name, field) {
				others = append(others, strings.TrimSpace(name))
			}
		}
	}
	delete(h, "Trailer")
	if len(others) > 0 {
		h["Trailer"] = []string{strings.Join(others, ", ")}
	}
}

func isField(name, field string) bool {
	return http.CanonicalHeaderKey(strings.TrimSpace(name)) == field
}

// isUndeclared reports whether a handler sets a trailer field that it has not declared under a key.
func isUndeclared(key, field string) bool {
	name, ok := strings.CutPrefix(key, http.TrailerPrefix)
	return ok && isField(name, field)
}

// estimates warns of the costs of a rule with its cost in the response.
func (w *warner) estimates(r *Rule, path string) {
	c, burst := r.Cost, float64(r.Limit.Capacity)
	switch {
	case c.Default == 0:
		w.add(field(path, "default_cost"), "is not set, so a request takes 1 token until its response "+
			"has ended: set it to the cost of a usual response")
	case c.fallback() > burst:
		w.add(field(path, "default_cost"), "is above burst, so the rule refuses every request")
	case c.Min > burst:
		w.add(field(path, "min_cost"), "is above burst, so every response puts its bucket into debt")
	case c.fallback() < c.Min:
		w.add(field(path, "default_cost"), "is below min_cost (%v < %v), so a response without a valid "+
			"cost is cheaper than any other", c.fallback(), c.Min)
	case c.Max > 0 && c.fallback() > c.Max:
		w.add(field(path, "default_cost"), "is above max_cost (%v > %v), so every request takes more "+
			"than its response can cost", c.fallback(), c.Max)
	}
}
