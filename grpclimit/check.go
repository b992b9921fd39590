package grpclimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// check returns the fields of a policy that have no meaning for a gRPC call, or pick exempt methods
// only.
func check(p *httplimit.Policy, exempt []string) error {
	if p == nil { // an error of httplimit
		return nil
	}
	errs := checkExceptions("policy", p.Except)
	for i := range p.Sets {
		s := &p.Sets[i]
		errs = append(errs, checkSelector(fmt.Sprintf("set %q: selector", s.Name), &s.Selector)...)
		if slices.Contains(exempt, s.Selector.PathExact) && s.Selector.PathPrefix == "" {
			errs = append(errs, fmt.Errorf("set %q: selector.pathExact is an exempt method (got %q)",
				s.Name, s.Selector.PathExact))
		}
		for r := range s.All() {
			if method := r.Match[MethodKey]; slices.Contains(exempt, method) {
				errs = append(errs, fmt.Errorf("rule %q: match has an exempt method (got %q)", r.Name, method))
			}
			errs = append(errs, checkExceptions(fmt.Sprintf("rule %q", r.Name), r.Except)...)
			for _, source := range foreignSources(r) {
				errs = append(errs, fmt.Errorf("rule %q: %s has no meaning for a gRPC call", r.Name, source))
			}
		}
	}
	return errors.Join(errs...)
}

func checkExceptions(of string, all []httplimit.Exception) (errs []error) {
	for i := range all {
		errs = append(errs, checkSelector(fmt.Sprintf("%s: except[%d]", of, i), &all[i].Selector)...)
	}
	return errs
}

func checkSelector(path string, s *httplimit.Selector) (errs []error) {
	if len(s.Hosts) > 0 {
		errs = append(errs, fmt.Errorf("%s.hosts has no meaning for a gRPC call", path))
	}
	isPost := func(m string) bool { return strings.EqualFold(m, http.MethodPost) }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, isPost) {
		errs = append(errs, fmt.Errorf("%s.methods must have POST, because every gRPC call is one: "+
			"pathExact and pathPrefix select gRPC methods", path))
	}
	return errs
}

// foreignSources returns the sources of a rule that no gRPC call has.
func foreignSources(r *httplimit.Rule) []string {
	sources := append(slices.Clone(r.Keys), slices.Sorted(maps.Keys(r.Match))...)
	sources = append(sources, r.Tiers.By, r.Priority.By, r.Cost.Source)
	return slices.DeleteFunc(sources, func(source string) bool {
		return !strings.HasPrefix(source, "query:") && !strings.EqualFold(source, "header:host") &&
			(!strings.HasPrefix(source, "response:") || source == "response:status")
	})
}
