package httplimit

import "github.com/seed-181794aa/ratelimit/httplimit/policy"

// classes are a policy.Priority prepared for requests.
type classes struct {
	by     source
	shares map[string]float64 // by the normalized class
	rest   float64
}

// newClasses makes the classes of a rule ready. It returns nil if there are none.
func (b *compilation) newClasses(p *policy.Priority, path policy.Path) *classes {
	if len(p.Keep) == 0 {
		return nil
	}
	c := &classes{
		by: b.newSource(p.By, path.Field("by")), shares: map[string]float64{}, rest: p.Rest(),
	}
	for _, name := range p.Classes() {
		if name == "" || name == policy.AnyClass {
			continue
		}
		value := c.by.checkName(name, path.Field("keep").Field(name), b)
		if _, ok := c.shares[value]; ok {
			b.errs.Add(path.Field("keep").Field(name), "must not have the same values as another class")
		}
		c.shares[value] = p.Keep[name]
	}
	return c
}

// checkName returns the normalized name of a tier or a class, and adds an error if no request can
// have it.
func (s *source) checkName(name string, path policy.Path, b *compilation) string {
	if _, must := s.matcher(name); must != "" && name != "" {
		b.errs.Add(path, "%s", must)
	}
	if s.normalize != nil && s.normalize(name) != "" {
		name = s.normalize(name)
	}
	return name
}

// keep sets how many tokens the request must leave in e's bucket.
func (c *call) keep(e *entry) {
	class, repeated := e.classes.by.keyValue(c)
	share, ok := e.classes.shares[class]
	switch {
	case repeated && !e.Shadow:
		c.setFault(e, isRepeated, e.classes.by.name)
	case !ok || repeated:
		share = e.classes.rest
	}
	e.keeps = policy.Kept(share, e.Limit.Capacity)
}
