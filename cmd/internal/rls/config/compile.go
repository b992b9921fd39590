package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// compiler makes rules of documents, and collects their errors.
type compiler struct {
	Config
	errs []error

	file   string
	line   line // of the last descriptor or limit, for errors
	domain string
	paths  map[[2]string]string // the places of paths, by domain and path
}

func (c *compiler) place() string { return fmt.Sprintf("%s:%d", c.file, max(c.line, 1)) }

func (c *compiler) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", c.place(), fmt.Sprintf(format, args...)))
}

func (c *compiler) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %s", c.place(), fmt.Sprintf(format, args...)))
}

// add adds a document.
func (c *compiler) add(file string, d *document, merge bool) {
	c.file, c.line = file, 0
	c.domain = d.Domain
	if c.domain == "" {
		c.fail("want a domain")
		return
	}
	into := c.domains[c.domain]
	switch {
	case into == nil:
		into = &Domain{Name: c.domain}
		c.domains[c.domain] = into
	case !merge:
		c.fail("domain %q is in another file, too", c.domain)
		return
	}
	c.addAll(&into.root, nil, "", d.Descriptors)
}

// addAll adds descriptors below a node, whose levels and path are above them.
func (c *compiler) addAll(parent *node, above []level, pathAbove string, all []descriptor) {
	for i := range all {
		d := &all[i]
		key, value := d.Key, d.Value
		c.line = d.line
		switch {
		case key == "":
			c.fail("want a key")
			continue
		case value == "" && strings.HasSuffix(key, "*"): // elsewhere in a key it is a character
			c.fail("key %q: want a value with the *", key)
			continue
		}
		isPattern := strings.Contains(value, "*")
		if d.ShareThreshold && !isPattern {
			c.fail("share_threshold: want a value with a *")
		}
		l := level{key: key, text: value, shared: d.ShareThreshold}
		l.open = value == "" || isPattern && !l.shared
		l.shown = l.open && d.ValueToMetric
		levels := slices.Concat(above, []level{l})
		path := string(appendStep([]byte(pathAbove), key, value))
		if other, ok := c.paths[[2]string{c.domain, path}]; ok {
			c.fail("%s is already defined at %s", path, other)
			continue
		}
		c.paths[[2]string{c.domain, path}] = c.place()
		n := parent.add(key, value)
		if d.RateLimit != nil {
			n.rule = c.newRule(d, levels, path)
		} else if d.ShadowMode || d.QuotaMode || d.DetailedMetric || len(d.Metadata) > 0 {
			c.warn("shadow_mode, quota_mode, detailed_metric and metadata have no effect without rate_limit")
		}
		c.addAll(n, levels, path, d.Descriptors)
	}
}

// newRule returns the rule of a descriptor.
func (c *compiler) newRule(d *descriptor, levels []level, path string) *Rule {
	r := &Rule{
		Domain: c.domain, Path: path, Place: c.place(), Name: d.RateLimit.Name,
		Unlimited: d.RateLimit.Unlimited, Shadow: d.ShadowMode, Quota: d.QuotaMode,
		levels: levels, Cost: 1, Debt: d.RateLimit.Debt,
	}
	id := compositekey.Append(nil, c.domain)
	for i := range levels {
		l := &levels[i]
		if l.open {
			r.open = append(r.open, i)
		}
		r.Dynamic = r.Dynamic || l.shown || l.open && d.DetailedMetric
		id = compositekey.Append(compositekey.Append(id, l.key), l.text)
		if l.shared {
			id = compositekey.AppendDigest(id, "")
		}
	}
	r.ID = string(id)
	if d.DetailedMetric {
		r.levels = append([]level(nil), levels...)
		for i := range r.levels {
			r.levels[i].shown = r.levels[i].open
		}
	}
	if !utf8.ValidString(c.domain + path + r.Name) { // by the type !!binary
		c.fail("want text in UTF-8")
	}
	if len(d.Metadata) > 0 {
		var err error
		if r.Metadata, err = structpb.NewStruct(asJSON(d.Metadata).(map[string]any)); err != nil {
			c.fail("metadata: %v", err)
		}
	}
	c.line = d.RateLimit.line
	c.setReplaces(r, d.RateLimit.Replaces)
	c.setLimit(r, d.RateLimit)
	c.Rules = append(c.Rules, r)
	return r
}

func (c *compiler) setReplaces(r *Rule, all []replaces) {
	for _, other := range all {
		switch other.Name {
		case "":
			c.fail("replaces: want a name")
		case r.Name:
			c.fail("replaces: %q is the name of the same rule", r.Name)
		}
		r.Replaces = append(r.Replaces, other.Name)
	}
}

// whole returns a whole number from least to most, or 0 if n is nil.
func (c *compiler) whole(name string, n *float64, least, most float64) uint32 {
	switch {
	case n == nil:
		return 0
	case *n >= least && *n <= most && *n == math.Trunc(*n):
		return uint32(*n)
	}
	c.fail("%s: want a whole number, %.0f to %.0f", name, least, most)
	return 0
}

func (c *compiler) setLimit(r *Rule, l *rateLimit) {
	r.Unit = Unit(ratelimit.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(l.Unit)])
	_, known := periods[r.Unit]
	if r.Unlimited {
		if known || l.Burst != nil || l.Cost != nil || l.Debt != nil {
			c.fail("unlimited: want no unit, burst, cost or debt")
		} else if l.Unit != "" || l.RequestsPerUnit != nil {
			c.warn("unlimited: unit and requests_per_unit have no effect")
		}
		return
	}
	if !known {
		c.fail("unit %q: want %s", l.Unit, units)
		return
	}
	if l.RequestsPerUnit == nil {
		c.warn("no requests_per_unit: %s refuses every request", r.Path)
	}
	r.RequestsPerUnit = c.whole("requests_per_unit", l.RequestsPerUnit, 0, math.MaxUint32)
	burst := c.whole("burst", l.Burst, 1, tb.MaxCapacity)
	if l.Cost != nil {
		if r.Cost = *l.Cost; !(r.Cost > 0 && r.Cost <= math.MaxUint32) { // NaN fails both
			c.fail("cost: want more than 0, and at most %d", uint32(math.MaxUint32))
			return
		}
	}
	if r.RequestsPerUnit == 0 {
		if burst > 0 {
			c.fail("burst: requests_per_unit is 0, so the bucket would never be refilled")
		}
		return
	}
	var err error
	if r.Limit, err = NewLimit(r.RequestsPerUnit, r.Unit, burst); err != nil {
		c.fail("%v", err)
		return
	}
	if int64(r.RequestsPerUnit) > r.Limit.Tokens || burst == 0 && r.RequestsPerUnit > tb.MaxCapacity {
		c.warn("requests_per_unit: the limit is reduced to %d a %s, and %d at once",
			r.Limit.Tokens, strings.ToLower(l.Unit), r.Limit.Capacity)
	}
	if r.Cost > float64(r.Limit.Capacity) {
		c.fail("cost: the bucket never has more than %d tokens", r.Limit.Capacity)
	}
}
