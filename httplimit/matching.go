package httplimit

import (
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/hostname"
	"github.com/seed-181794aa/ratelimit/tb"
)

func (c *call) findRules() {
	if c.isException(c.policy.except) {
		return
	}
	for _, s := range c.policy.sets {
		picked, unclear, _ := picks(&s.Selector, c.r, c.l.foldPaths)
		if unclear {
			if r := c.firstOf(s.rules); r != nil {
				c.pushFault(r, isUnclear, "path")
			}
		}
		if !picked {
			continue
		}
		applied := c.collect(s.ladders, false)
		appliedWithShadows := c.collect(s.withShadows, true) || applied
		if f := s.fallback; f != nil && (!applied && !f[0].Shadow || !appliedWithShadows) {
			c.collectGroup(f, false)
		}
	}
}

// collect adds the rules of each ladder that apply, or only the shadow rules among them. It
// reports whether any rule applies.
func (c *call) collect(ladders []ladder, shadowsOnly bool) (applied bool) {
	for _, ladder := range ladders {
		for _, g := range ladder {
			if c.collectGroup(g, shadowsOnly) {
				applied = true
				break
			}
		}
	}
	return applied
}

func (c *call) collectGroup(g []*rule, shadowsOnly bool) (applied bool) {
	holds, repeated := c.matches(g[0].conditions)
	if repeated != "" {
		r := c.firstOf(g)
		if r != nil && !shadowsOnly {
			c.pushFault(r, isRepeated, repeated)
		}
		return r != nil
	}
	if !holds {
		return false
	}
	for _, r := range g {
		if !c.pushEntry(r) {
			continue
		}
		applied = true
		if shadowsOnly && !r.Shadow {
			c.popEntry()
		}
	}
	return applied
}

// firstOf returns the first enforced rule of which the request is not an exception, or nil.
func (c *call) firstOf(rules []*rule) *rule {
	for _, r := range rules {
		if !r.Shadow && !c.isException(r.except) {
			return r
		}
	}
	return nil
}

func (c *call) isException(all []exception) bool {
	for i := range all {
		e := &all[i]
		contains := func(p netip.Prefix) bool { return p.Contains(c.client()) }
		isUpper := len(e.Methods) == 0 || c.r.Method == strings.ToUpper(c.r.Method)
		if picked, _, plain := picks(&e.Selector, c.r, c.l.foldPaths); picked && plain && isUpper &&
			(len(e.networks) == 0 || slices.ContainsFunc(e.networks, contains)) {
			return true
		}
	}
	return false
}

// matches reports whether all conditions hold. If that depends on a key that the request has more
// than once, it returns the key's name.
func (c *call) matches(conditions []condition) (holds bool, repeated string) {
	for i := range conditions {
		value, again := conditions[i].value(c)
		switch {
		case again:
			repeated = conditions[i].name
		case value == "" || !conditions[i].holds(value):
			return false, ""
		}
	}
	return repeated == "", repeated
}

// pushEntry adds a rule with its key in this request. It adds nothing and reports false if the rule
// does not apply, because the request is an exception or lacks a part of the key.
func (c *call) pushEntry(r *rule) bool {
	if r.isParent && !c.client().Is6() || c.isException(r.except) {
		return false
	}
	e := c.newEntry(r.now())
	if r.tiers != nil {
		e.rule = r.tiers.of(c, e)
	}
	if r.classes != nil {
		e.keeps = policy.Kept(r.classes.of(c, e).share, e.Limit.Capacity)
	}
	e.cost = r.price.cost(c)
	start, inMemory := len(c.keys), r.table != nil
	for i := range r.sources {
		if i > 0 && !inMemory {
			c.keys = append(c.keys, compositekey.Separator)
		}
		var f fault
		c.keys, f = r.sources[i].appendPart(c.keys, c, !inMemory)
		if f == isRepeated && r.Shadow {
			f = isMissing
		}
		switch {
		case f == noFault || f == isMissing && r.OnMissing == policy.Shared:
		case f == isMissing && r.OnMissing == policy.Skip:
			c.popEntry()
			return false
		case e.fault == noFault: // the first
			c.setFault(e, f, r.sources[i].name)
		}
	}
	// The key is a view of c.keys, which is only appended to until the call ends. An array that
	// c.keys has outgrown stays as it is. A Memory copies what it keeps, and end clears the charges.
	if key := c.keys[start:]; len(key) > 0 {
		e.key = unsafe.String(&key[0], len(key))
	}
	return true
}

func (c *call) pushFault(r *rule, f fault, key string) {
	e := c.newEntry(r)
	e.cost = r.price.cost(c)
	c.setFault(e, f, key)
}

func (c *call) setFault(e *entry, f fault, key string) {
	e.fault, e.faultyKey = f, key
	e.decision = tb.Decision{RetryAfter: tb.Never}
}

// newEntry adds an entry, which the caller fills in place because it is large.
func (c *call) newEntry(r *rule) *entry {
	n := len(c.entries)
	c.entries = slices.Grow(c.entries, 1)[:n+1]
	e := &c.entries[n]
	e.rule = r
	return e
}

// popEntry removes the last entry. Beyond the last entry the array is zero.
func (c *call) popEntry() {
	last := len(c.entries) - 1
	c.entries[last] = entry{}
	c.entries = c.entries[:last]
}

// normalized returns s with hosts and paths in the form in which requests are compared: in lower
// case if foldPaths is true.
func normalized(s policy.Selector, foldPaths bool) policy.Selector {
	s.Hosts = slices.Clone(s.Hosts)
	for i, h := range s.Hosts {
		s.Hosts[i] = hostname.Bare(h)
	}
	if s.PathExact != "" {
		s.PathExact = resolved(slashed(s.PathExact))
	}
	if s.PathPrefix != "" {
		s.PathPrefix = resolved(slashed(s.PathPrefix) + "/")
	}
	if foldPaths {
		s.PathExact, s.PathPrefix = strings.ToLower(s.PathExact), strings.ToLower(s.PathPrefix)
	}
	return s
}

// picks reports whether a selector, which is normalized, picks the request. It reports ambiguous if
// it picks it or not as one reads the path: see ResolvePath. It reports plain if it compares no
// path or the path as it is, which no server takes for another one.
func picks(s *policy.Selector, r *http.Request, foldPaths bool) (picked, ambiguous, plain bool) {
	method := func(m string) bool { return strings.EqualFold(m, r.Method) }
	switch {
	case len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, method),
		len(s.Hosts) > 0 && !slices.Contains(s.Hosts, hostname.Bare(r.Host)):
		return false, false, false
	case s.PathExact == "" && s.PathPrefix == "":
		return true, false, true
	}
	p, raw, ok := ResolvePath(r.URL)
	// http.ServeMux resolves no path of CONNECT, and no encoded dots.
	ok = ok && (r.Method != http.MethodConnect || r.URL.Path == "" || r.URL.Path == p) &&
		!encodedDots.MatchString(r.URL.RawPath)
	// Some servers take backslashes and encoded slashes as slashes, several slashes as one, * as a
	// name, and parameters only in the last segment.
	if p = withoutParameters(slashed(p)); p == "*" || strings.Contains(p, "//") {
		p = resolved(p)
	}
	plain = p == r.URL.Path || p == "/"+r.URL.Path // http.StripPrefix may have removed the slash
	if foldPaths {
		p, raw = strings.ToLower(p), strings.ToLower(raw)
	}
	// chi and echo compare the encoded path.
	plain = plain && (raw == "" || s.PathPrefix != "" && strings.HasPrefix(raw, s.PathPrefix))
	return ok && (s.PathExact != "" && p == s.PathExact ||
		s.PathPrefix != "" && strings.HasPrefix(p, s.PathPrefix)), !ok, plain
}

var encodedDots = regexp.MustCompile(`(?i)/(\.?%2e|%2e\.|%2e%2e)(/|$)`)

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

// resolved returns a path of a policy in the form of ResolvePath.
func resolved(p string) string {
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") ||
		strings.HasSuffix(p, "/..")) {
		return clean + "/"
	}
	return clean
}
