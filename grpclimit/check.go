package grpclimit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// check returns the fields of a policy that have no meaning for a gRPC call, or pick exempt methods
// only.
func check(p *httplimit.Policy, exempt []string) error {
	if p == nil { // an error of httplimit
		return nil
	}
	var errs policy.Problems
	checkExceptions(p.Except, "policy: except", &errs)
	for i := range p.Sets {
		s := &p.Sets[i].Selector
		path := policy.Path(fmt.Sprintf("set %q: selector", p.Sets[i].Name))
		checkSelector(s, path, &errs)
		prefix := strings.TrimSuffix(s.PathPrefix, "/")
		switch isExempt := slices.Contains(exempt, s.PathExact); {
		case isExempt && s.PathPrefix == "":
			errs.Add(path.Field("pathExact"), "is an exempt method (got %q)", s.PathExact)
		case (isExempt || s.PathExact == "") && slices.Contains(exempt, prefix):
			errs.Add(path.Field("pathPrefix"), "is an exempt method (got %q)", s.PathPrefix)
		}
		for r := range p.Sets[i].All() {
			path := policy.Path(fmt.Sprintf("rule %q: ", r.Name))
			if method := r.Match[MethodKey]; slices.Contains(exempt, method) {
				errs.Add(path+"match", "has an exempt method (got %q)", method)
			}
			checkExceptions(r.Except, path+"except", &errs)
			for _, source := range foreignFields(r) {
				errs.Add(path+policy.Path(source), "has no meaning for a gRPC call")
			}
		}
	}
	return errors.Join(errs...)
}

func checkExceptions(all []httplimit.Exception, path policy.Path, errs *policy.Problems) {
	for i := range all {
		checkSelector(&all[i].Selector, path.Index(i), errs)
	}
}

func checkSelector(s *httplimit.Selector, path policy.Path, errs *policy.Problems) {
	if len(s.Hosts) > 0 {
		errs.Add(path.Field("hosts"), "has no meaning for a gRPC call")
	}
	isPost := func(m string) bool { return strings.EqualFold(m, http.MethodPost) }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, isPost) {
		errs.Add(path.Field("methods"), "must have POST, because every gRPC call is one: "+
			"pathExact and pathPrefix select gRPC methods")
	}
}

// foreignFields returns the sources of a rule that no gRPC call has, and the name of a field that
// has statuses of HTTP only.
func foreignFields(r *httplimit.Rule) []string {
	sources := append(slices.Clone(r.Keys), slices.Sorted(maps.Keys(r.Match))...)
	sources = append(sources, r.Tiers.By, r.Priority.By, r.Cost.Source)
	foreign := slices.DeleteFunc(sources, func(source string) bool {
		return !strings.HasPrefix(source, "query:") && !strings.EqualFold(source, "header:host") &&
			(!strings.HasPrefix(source, "response:") || source == "response:status")
	})
	for status := range r.Cost.Statuses {
		if _, isCode := code.Code_value[status]; isCode {
			return foreign
		}
	}
	if len(r.Cost.Statuses) > 0 {
		foreign = append(foreign, "status_costs")
	}
	return foreign
}
