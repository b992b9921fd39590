package policy

import (
	"maps"
	"math"
	"slices"
)

// Priority lets some classes of requests take only a part of a bucket, so that the rest is there
// for others. The bucket is one for all classes.
type Priority struct {
	// By is the key whose value is the class of a request, as in Rule.Match. It need not be in
	// Rule.Keys. It must not be ip:address. "" means that there are no classes.
	By string
	// Keep has the share of the burst that a class must leave, 0 or more and below 1. AnyClass is
	// every other class, also of a request without By. Without AnyClass, such a request leaves the
	// greatest share.
	Keep map[string]float64
}

// AnyClass is the name of all other classes.
const AnyClass = "*"

// Classes returns the names in Keep in order.
func (p *Priority) Classes() []string { return slices.Sorted(maps.Keys(p.Keep)) }

// Rest returns the share that requests of no named class leave.
func (p *Priority) Rest() (share float64) {
	if share, ok := p.Keep[AnyClass]; ok {
		return share
	}
	for _, s := range p.Keep {
		share = max(share, s)
	}
	return share
}

// Kept returns how many tokens a share of a burst is, to a millionth, so that 0.1 of 30 is 3.
func Kept(share float64, burst int) float64 {
	return math.Round(share*float64(burst)*1e6) / 1e6
}

func (r *Rule) checkPriority(path Path, errs *Problems) {
	p, path := &r.Priority, path.Field("priority")
	if p.By == "" && len(p.Keep) == 0 {
		return
	}
	checkBy(p.By, path, "keep", p.Classes(), errs)
	switch {
	case r.OnLimit == Delay:
		errs.Add(path, "must not be in a rule with on_limit delay, which lends tokens in advance")
	case r.Block > 0:
		errs.Add(path, "must not be in a rule with block, because one class would block the others")
	case len(p.Keep) == 0:
		errs.Add(path.Field("keep"), "must not be empty")
	}
	for _, name := range p.Classes() {
		if share := p.Keep[name]; !(share >= 0 && share < 1) { // NaN fails
			errs.Add(path.Field("keep").Field(name), "must be 0 or more, and below 1 (got %v)", share)
		}
	}
}

// priority warns of a class that a client chooses, and of one that gets nothing.
func (w *warner) priority(s *RuleSet, r *Rule, path Path) {
	if s.enforces(r) && w.isInvented(r.Priority.By) {
		w.Add(path.Field("by"), "is chosen by the client, which can name the class that leaves the "+
			"least (got %q)", r.Priority.By)
	}
	for _, name := range r.Priority.Classes() {
		cost, burst := r.Cost.Fallback(), float64(r.Limit.Capacity)
		left := Kept(1-r.Priority.Keep[name], r.Limit.Capacity)
		if cost > left && cost <= burst { // or else another warning says it
			w.Add(path.Field("keep").Field(name), "lets the class take %v tokens, and a request costs %v: "+
				"the rule refuses all of them", left, cost)
		}
	}
}
