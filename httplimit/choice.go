package httplimit

import (
	"cmp"
	"slices"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// spareTiers is how many tiers a table has at least. The names of a later policy get those that are
// left. A table of 128 tiers takes some 50 kB more.
const spareTiers = 128

// choice is what a request gets by the value of a key, such as a tier or a class.
type choice[T any] struct {
	by     source
	values map[string]T // by the normalized name
	other  T            // of a request that names none of them
}

// newChoice makes the choice between the names at path ready. A name that no request can have is an
// error, and so are two that no request can tell apart.
func newChoice[T any](
	b *compilation, by source, path policy.Path, names []string, other T, value func(name string) T,
) *choice[T] {
	c := &choice[T]{by: by, values: map[string]T{}, other: other}
	taken := map[string]string{}
	for _, name := range names {
		at := path.Field(name)
		if _, must := by.matcher(name); must != "" && name != "" {
			b.errs.Add(at, "%s", must)
		}
		v := name
		if by.normalize != nil {
			v = cmp.Or(by.normalize(name), name)
		}
		if first, ok := taken[v]; ok {
			b.errs.Add(at, "must not have the same values as %q", first)
		}
		taken[v], c.values[v] = name, value(name)
	}
	return c
}

// of returns what a request gets for the rule of e. Several values of the key are a fault.
func (ch *choice[T]) of(c *call, e *entry) T {
	name, repeated := ch.by.keyValue(c)
	if repeated && !e.Shadow {
		c.setFault(e, isRepeated, ch.by.name)
	}
	if v, ok := ch.values[name]; ok && !repeated {
		return v
	}
	return ch.other
}

func (b *compilation) addTiers(r *rule, path policy.Path) {
	if len(r.Tiers.Limits) == 0 {
		return
	}
	path = path.Field("algorithm_config").Field("tiers")
	by := b.newSource(r.Tiers.By, path.Field("by"))
	base := *r
	r.tiers = newChoice(b, by, path.Field("limits"), r.Tiers.Names(), r, func(name string) *rule {
		t := base
		t.tierName, t.Limit = name, r.Tiers.Limits[name]
		if t.Limit.Validate() == nil {
			t.ruleText = newRuleText(r.label, &t.Rule)
		}
		return &t
	})
}

// place gives the tiers of a rule their places, and returns the limits of all places.
func (s *ruleState) place(r *rule) []tb.Limit {
	limits := []tb.Limit{r.Limit}
	if r.tiers == nil {
		return limits
	}
	for _, name := range r.Tiers.Names() {
		s.tiers[name] = len(limits)
		limits = append(limits, r.Tiers.Limits[name])
	}
	count := min(max(2*len(limits), spareTiers), cas.MaxTiers)
	return append(limits, slices.Repeat(limits[:1], count-len(limits))...)
}

type class struct {
	name  string
	share float64
}

func (b *compilation) newClasses(p *policy.Priority, path policy.Path) *choice[class] {
	if len(p.Keep) == 0 {
		return nil
	}
	names := slices.DeleteFunc(p.Classes(), func(name string) bool { return name == policy.AnyClass })
	return newChoice(b, b.newSource(p.By, path.Field("by")), path.Field("keep"), names,
		class{policy.AnyClass, p.Rest()},
		func(name string) class { return class{name, p.Keep[name]} })
}
