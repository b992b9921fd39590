package httplimit

// labels returns the names under which clients see the rules of all sets, in order: that
// of the rule, with that of its set before it if more sets have such a rule.
func (p *Policy) labels() (all []string) {
	names := map[string]int{}
	for i := range p.Sets {
		for r := range p.Sets[i].all("") {
			names[r.Name]++
		}
	}
	for i := range p.Sets {
		for r := range p.Sets[i].all("") {
			label := r.Name
			if names[r.Name] > 1 {
				label = p.Sets[i].Name + "/" + r.Name
			}
			all = append(all, label)
		}
	}
	return all
}

// checkLabels checks that no rule has the name that another gets with its set.
func (p *Policy) checkLabels(errs *problems) {
	type owner struct{ set, rule, at string }
	owners := map[string]owner{}
	labels := p.labels()
	for i := range p.Sets {
		for r, at := range p.Sets[i].all(p.place(i)) {
			label, own := labels[0], owner{p.Sets[i].Name, r.Name, at}
			labels = labels[1:]
			other, taken := owners[label]
			if taken && (other.set != own.set || other.rule != own.rule) {
				errs.add(field(at, "name"), "must be another: clients would see %q, as for %s",
					label, other.at)
			}
			owners[label] = own
		}
	}
}
