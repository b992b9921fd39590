package httplimit

import (
	"maps"
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

func (t *Tiers) names() []string { return slices.Sorted(maps.Keys(t.Limits)) }

// check returns what is wrong with the tiers of a rule at path.
func (r *Rule) checkTiers(path string, errs *problems) {
	t, path := &r.Tiers, field(field(path, "algorithm_config"), "tiers")
	if t.By == "" && len(t.Limits) == 0 {
		return
	}
	checkKey(t.By, field(path, "by"), map[string]bool{}, errs)
	switch {
	case isAddressKey(t.By):
		errs.add(field(path, "by"), "must not be ip:address")
	case len(r.levels()) > 1:
		errs.add(path, "have no meaning for a key with parent networks")
	case len(t.Limits) == 0 || len(t.Limits) > maxTiers:
		errs.add(field(path, "limits"), "must have 1 to %d tiers (got %d)", maxTiers, len(t.Limits))
	}
	for _, name := range t.names() {
		limit := t.Limits[name]
		if err := limit.Validate(); err != nil && limit != unreadLimit {
			errs.add(field(field(path, "limits"), name), "is not valid: %v", err)
		}
		if name == "" {
			errs.add(field(path, "limits"), "must not have the name \"\", because an empty value "+
				"counts as missing")
		}
	}
}
