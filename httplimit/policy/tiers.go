package policy

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
