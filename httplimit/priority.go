package httplimit

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// class is a class of a policy.Priority.
type class struct {
	name  string
	share float64
}

// newClasses makes the classes of a rule ready. It returns nil if there are none.
func (b *compilation) newClasses(p *policy.Priority, path policy.Path) *choice[class] {
	if len(p.Keep) == 0 {
		return nil
	}
	names := slices.DeleteFunc(p.Classes(), func(name string) bool { return name == policy.AnyClass })
	return newChoice(b, b.newSource(p.By, path.Field("by")), path.Field("keep"), names,
		class{policy.AnyClass, p.Rest()},
		func(name string) class { return class{name, p.Keep[name]} })
}
