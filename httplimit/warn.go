package httplimit

import "slices"

// Warnings returns what is allowed in a policy and probably not meant. Each begins with its
// path in the document, as the errors of ParsePolicy do.
func (p *Policy) Warnings() []string {
	warnings := slices.Clone(p.warnings)
	if p.UnverifiedJWT {
		warnings = append(warnings, join("jwt",
			"is unverified: without a check of the signature anyone may claim anything, "+
				"plan=enterprise included"))
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		path := p.place(i)
		for r, at := range s.all(path) {
			at = field(at, "algorithm_config")
			if c := r.Cost; c.fixed() && c.cost() > float64(r.Limit.Capacity) {
				warnings = append(warnings, join(field(at, "fixed_cost"),
					"is above burst, so the rule refuses everything"))
			} else if !c.fixed() && (c.Min == 0 || c.Max == 0) {
				warnings = append(warnings, join(field(at, "cost_source"),
					"lets clients that set the cost themselves set their limit, "+
						"without min_cost and max_cost"))
			}
		}
		always := func(r Rule) bool { return len(r.Match) == 0 && !r.Shadow }
		if s.Fallback != nil && slices.ContainsFunc(s.Rules, always) {
			warnings = append(warnings, join(field(path, fallbackName),
				"never applies, because there is a rule without match"))
		}
	}
	return warnings
}
