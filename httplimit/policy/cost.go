package policy

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

func (c *Cost) isFixed() bool { return c.Source == "" || c.Source == "fixed" }

// Fallback returns the cost of a request that does not state one.
func (c *Cost) Fallback() float64 {
	if c.isFixed() {
		return cmp.Or(c.Fixed, 1)
	}
	return cmp.Or(c.Default, 1)
}

// Cost says how many tokens a request takes. All numbers are tokens, 0 or 10⁻⁴⁰ to 10¹⁷, and may
// have fractions.
type Cost struct {
	// Source is "" or "fixed", or where the cost is: "header:<name>" or "query:<name>" of the
	// request, or "response:header:<name>", "response:bytes", "response:status" or "response:usage",
	// which needs httplimit.WithUsage.
	//
	// If the cost is in the response, the request takes Default, which is an estimate. The rule
	// is settled after the response: see httplimit.Settlement.
	Source string
	Fixed  float64 // if Source is fixed; 0 means 1
	// Default is the cost if the request or the response has no decimal number there; 0 means 1.
	// The number must be positive, but the cost of a response may be 0. A number that is too large to
	// be read, or more than 1,024 bytes, is the largest cost. If a request has several numbers, the
	// cost is the largest of them, Default and Max.
	Default float64
	// Min and Max bound the number. 0 means no bound.
	Min, Max float64
	// Statuses has the costs of "response:status", which may be 0: by a status such as "401", by a
	// class of them such as "4xx", or by a code of gRPC such as "UNAUTHENTICATED". The status itself
	// comes before its class. Any other response costs Default.
	Statuses map[string]float64
}

const wantCostSource = "must be fixed, header:<name>, query:<name>, response:header:<name>, " +
	"response:bytes, response:status or response:usage, with a name of A-Z a-z 0-9 _ - (got %q)"

const (
	minCost = leastNumber
	// maxCost is the largest cost that makes sense in a policy: 10⁸ times the largest bucket.
	maxCost = 1e17
)

var isStatus = regexp.MustCompile("^([1-9][0-9]{2}|[1-9]xx|OK|CANCELLED|UNKNOWN|INVALID_ARGUMENT|" +
	"DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|RESOURCE_EXHAUSTED|" +
	"FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS|" +
	"UNAUTHENTICATED)$")

func (c *Cost) check(path Path, errs *Problems) {
	kind, _ := c.Kind()
	if kind == "" {
		errs.Add(path.Field("cost_source"), wantCostSource, c.Source)
	}
	check := func(path Path, value float64) {
		if value != 0 && !(value >= minCost && value <= maxCost) { // NaN fails
			errs.Add(path, "must be %g to %g (got %v)", minCost, maxCost, value)
		}
	}
	check(path.Field("fixed_cost"), c.Fixed)
	check(path.Field("default_cost"), c.Default)
	check(path.Field("min_cost"), c.Min)
	check(path.Field("max_cost"), c.Max)
	byStatus, statuses := kind == ResponseStatus, path.Field("status_costs")
	switch {
	case byStatus && len(c.Statuses) == 0:
		errs.Add(statuses, "is missing, because cost_source is response:status")
	case byStatus && (c.Min != 0 || c.Max != 0):
		errs.Add(path.Field("cost_source"), "has no min_cost and no max_cost if it is response:status")
	case !byStatus && len(c.Statuses) > 0:
		errs.Add(statuses, "has no effect without a cost_source of response:status")
	}
	for _, status := range slices.Sorted(maps.Keys(c.Statuses)) {
		check(statuses.Field(status), c.Statuses[status])
		if !isStatus.MatchString(status) {
			errs.Add(statuses.Field(status), "must be a status such as 401, a class such as 4xx, or a "+
				"code of gRPC such as UNAUTHENTICATED")
		}
	}
	if c.Max > 0 && c.Min > c.Max {
		errs.Add(path.Field("min_cost"), "must be <= max_cost (got %v, want <= %v)", c.Min, c.Max)
	}
}

func (w *warner) costs(r *Rule, path Path) {
	c, burst := r.Cost, float64(r.Limit.Capacity)
	inResponse := c.InResponse()
	switch {
	case c.Fallback() > burst && c.isFixed():
		w.Add(path.Field("fixed_cost"), "is above burst, so the rule refuses every request")
	case c.Fallback() > burst && inResponse:
		w.Add(path.Field("default_cost"), "is above burst, so the rule refuses every request")
	case c.Fallback() > burst:
		w.Add(path.Field("default_cost"), "is above burst, so the rule refuses every request without "+
			"a valid cost")
	case inResponse && c.Default == 0 && len(c.Statuses) == 0:
		w.Add(path.Field("default_cost"), "is not set, so a request takes 1 token until its response "+
			"has ended: set it to the cost of a usual response")
	}
	if c.isFixed() || inResponse {
		return
	}
	switch {
	case c.Min > burst:
		w.Add(path.Field("min_cost"), "is above burst, so the rule refuses every request with a cost")
	case c.Fallback() < c.Min:
		w.Add(path.Field("default_cost"), "is below min_cost (%v < %v), so a request without a valid "+
			"cost is cheaper than any other", c.Fallback(), c.Min)
	}
	if c.Min == 0 || c.Max == 0 {
		w.Add(path.Field("cost_source"), "lets clients choose how many tokens a "+
			"request takes: set both min_cost and max_cost")
	}
}

// The kinds of sources in the response: see Cost.Kind.
const (
	ResponseHeader = "response:header"
	ResponseBytes  = "response:bytes"
	ResponseStatus = "response:status"
	ResponseUsage  = "response:usage"
)

// Kind returns the kind of Source, which is fixed, header, query or one of the kinds in the
// response, and the name of the field or parameter. The kind is "" if Source is not valid.
func (c *Cost) Kind() (kind, name string) {
	switch c.Source {
	case "":
		return "fixed", ""
	case "fixed", ResponseBytes, ResponseStatus, ResponseUsage:
		return c.Source, ""
	}
	for _, kind := range []string{"header", "query", ResponseHeader} {
		name, ok := strings.CutPrefix(c.Source, kind+":")
		if ok && partName.MatchString(name) {
			return kind, name
		}
	}
	return "", ""
}

// OfStatus returns the cost of a response with a status: see Statuses.
func (c *Cost) OfStatus(status string) float64 {
	if cost, ok := c.Statuses[status]; ok {
		return cost
	}
	if len(status) == 3 {
		if cost, ok := c.Statuses[status[:1]+"xx"]; ok {
			return cost
		}
	}
	return c.Fallback()
}

// InResponse reports whether the cost is in the response.
func (c *Cost) InResponse() bool { return strings.HasPrefix(c.Source, "response:") }
