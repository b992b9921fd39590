package policy

import (
	"maps"
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Tiers give some requests of a rule another limit. The buckets of all tiers are in one table. A
// bucket that changes its tier keeps its tokens, but not more than the new capacity, and its debt.
type Tiers struct {
	// By is the key whose value is the name of a request's tier, as in Rule.Match. It need not be
	// in Rule.Keys. It must not be ip:address. "" means that there are no tiers.
	By string
	// Limits has the limit of each tier by its name. A request without By, or with another value,
	// has Rule.Limit.
	Limits map[string]tb.Limit
}

// maxTiers is the most tiers of a rule. One more has the limit of the rule itself.
const maxTiers = cas.MaxTiers - 1

// Names returns the names of the tiers in order.
func (t *Tiers) Names() []string { return slices.Sorted(maps.Keys(t.Limits)) }

func (r *Rule) checkTiers(path Path, errs *Problems) {
	t, path := &r.Tiers, path.Field("algorithm_config").Field("tiers")
	if t.By == "" && len(t.Limits) == 0 {
		return
	}
	checkBy(t.By, path, "limits", t.Names(), errs)
	switch {
	case len(r.Levels()) > 1:
		errs.Add(path, "have no meaning for a key with parent networks")
	case len(t.Limits) == 0 || len(t.Limits) > maxTiers:
		errs.Add(path.Field("limits"), "must have 1 to %d tiers (got %d)", maxTiers, len(t.Limits))
	}
	for _, name := range t.Names() {
		limit := t.Limits[name]
		if err := limit.Validate(); err != nil && limit != unreadLimit {
			errs.Add(path.Field("limits").Field(name), "is not valid: %v", err)
		}
	}
}

// checkBy checks the key at path.by, whose values are among these names in a field of path.
func checkBy(key string, path Path, field string, names []string, errs *Problems) {
	checkKey(key, path.Field("by"), map[string]bool{}, errs)
	if IsAddressKey(key) {
		errs.Add(path.Field("by"), "must not be ip:address (got %q)", key)
	}
	if slices.Contains(names, "") {
		errs.Add(path.Field(field), "must not have the name \"\", because an empty value counts as "+
			"missing")
	}
}

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
