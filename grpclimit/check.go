package grpclimit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// check returns the fields of a policy that have no meaning for a gRPC call.
func check(p *httplimit.Policy) error {
	if p == nil { // an error of httplimit
		return nil
	}
	var errs []error
	for i := range p.Sets {
		s := &p.Sets[i]
		for _, text := range foreignToSelector(&s.Selector) {
			errs = append(errs, fmt.Errorf("set %q: %s", s.Name, text))
		}
		for r := range s.All() {
			for _, source := range foreignSources(r) {
				errs = append(errs, fmt.Errorf("rule %q: %s has no meaning for a gRPC call", r.Name, source))
			}
		}
	}
	return errors.Join(errs...)
}

func foreignToSelector(s *httplimit.Selector) (all []string) {
	if len(s.Hosts) > 0 {
		all = append(all, "selector.hosts has no meaning for a gRPC call")
	}
	isPost := func(m string) bool { return strings.EqualFold(m, "POST") }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, isPost) {
		all = append(all, "selector.methods must have POST, because every gRPC call is one: "+
			"pathExact and pathPrefix select gRPC methods")
	}
	return all
}

// foreignSources returns the sources of a rule that no gRPC call has.
func foreignSources(r *httplimit.Rule) []string {
	sources := append(slices.Clone(r.Keys), slices.Sorted(maps.Keys(r.Match))...)
	sources = append(sources, r.Tiers.By, r.Cost.Source)
	return slices.DeleteFunc(sources, func(source string) bool {
		return !strings.HasPrefix(source, "query:") && !strings.HasPrefix(source, "response:") &&
			!strings.EqualFold(source, "header:host")
	})
}
