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
	var errs problems
	errs.checkExceptions("policy", p.Except)
	for i := range p.Sets {
		s := &p.Sets[i]
		path := fmt.Sprintf("set %q: selector", s.Name)
		errs.checkSelector(path, &s.Selector)
		exact, prefix := s.Selector.PathExact, strings.TrimSuffix(s.Selector.PathPrefix, "/")
		switch isExempt := slices.Contains(exempt, exact); {
		case isExempt && s.Selector.PathPrefix == "":
			errs.add("%s.pathExact is an exempt method (got %q)", path, exact)
		case (isExempt || exact == "") && slices.Contains(exempt, prefix):
			errs.add("%s.pathPrefix is an exempt method (got %q)", path, s.Selector.PathPrefix)
		}
		for r := range s.All() {
			if method := r.Match[MethodKey]; slices.Contains(exempt, method) {
				errs.add("rule %q: match has an exempt method (got %q)", r.Name, method)
			}
			errs.checkExceptions(fmt.Sprintf("rule %q", r.Name), r.Except)
			for _, source := range foreignSources(r) {
				errs.add("rule %q: %s has no meaning for a gRPC call", r.Name, source)
			}
		}
	}
	return errors.Join(errs...)
}

type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) checkExceptions(of string, all []httplimit.Exception) {
	for i := range all {
		p.checkSelector(fmt.Sprintf("%s: except[%d]", of, i), &all[i].Selector)
	}
}

func (p *problems) checkSelector(path string, s *httplimit.Selector) {
	if len(s.Hosts) > 0 {
		p.add("%s.hosts has no meaning for a gRPC call", path)
	}
	isPost := func(m string) bool { return strings.EqualFold(m, http.MethodPost) }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, isPost) {
		p.add("%s.methods must have POST, because every gRPC call is one: pathExact and pathPrefix"+
			" select gRPC methods", path)
	}
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
