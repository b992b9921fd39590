package tokenbucket

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

const addressKey = "ip:address"

// ruleName is what names a rule. A matcher is not a name.
var ruleName = regexp.MustCompile(`^[0-9A-Za-z_][ -~]*$`)

func (p *parser) rule() error {
	r := ruleParser{Helper: p.Helper, options: options{directive: *p.Dispenser}}
	if err := text(p.Dispenser, &r.Name)(); err != nil {
		return err
	}
	if !ruleName.MatchString(r.Name) {
		return p.Errf("%q is not a name, which is ASCII and begins with a letter or a digit: matchers"+
			" stand in the rule, as in match /api/*", r.Name)
	}
	if err := r.lines().read(p.Dispenser, r.options, " of a rule"); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	if r.MaxDelay > 0 {
		r.OnLimit = policy.Delay
	}
	if r.matchers != nil {
		p.handler.Matchers[r.Name] = r.matchers
		r.Match = map[string]string{matcherKey + r.Name: "true"}
	}
	// A set of its own, so that the rule applies whatever the other rules do.
	p.policy.Sets = append(p.policy.Sets, policy.RuleSet{
		Name: r.Name, Selector: r.selector, Rules: []policy.Rule{r.Rule},
	})
	p.rules = append(p.rules, r.options)
	return nil
}

// ruleParser reads the lines of a rule.
type ruleParser struct {
	httpcaddyfile.Helper
	policy.Rule
	options  options
	selector policy.Selector
	prefixes []string // of ip:address
	matchers caddyhttp.RawMatcherSets
}

func (p *ruleParser) lines() lines {
	d := p.Dispenser
	all := lines{
		"rate": argument(d, p.rate), "burst": integer(d, tb.MaxCapacity, &p.Limit.Capacity),
		"key": p.keys, "ipv6_prefixes": texts(d, &p.prefixes), "match": p.match,
		"except": exception(p.Helper, &p.Except), "cost": p.cost,
		"on_missing": argument(d, p.onMissing), "delay": duration(d, &p.MaxDelay),
		"block": duration(d, &p.Block), "priority": p.priority, "shadow": flag(d, &p.Shadow),
	}
	maps.Copy(all, selectorLines(d, &p.selector))
	return all
}

// selectorLines are the options of a selector.
func selectorLines(d *caddyfile.Dispenser, s *policy.Selector) lines {
	return lines{
		"host": texts(d, &s.Hosts), "method": texts(d, &s.Methods),
		"path": func() error { return paths(d, s) },
	}
}

// paths reads an exact path, a prefix such as /api/*, or both.
func paths(d *caddyfile.Dispenser, s *policy.Selector) error {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	for _, arg := range args {
		field := &s.PathExact
		path, isPrefix := strings.CutSuffix(arg, "*")
		if isPrefix {
			field = &s.PathPrefix
		}
		isPart := isPrefix && !strings.HasSuffix(path, "/") // /api* of Caddy is also /apix
		if arg == "" || *field != "" || strings.Contains(path, "*") || isPart {
			return d.Errf("path %q: want at most one path and one prefix such as /api/*", arg)
		}
		*field = path
	}
	return nil
}

// exception is a block of requests that are not limited.
func exception(h httpcaddyfile.Helper, to *[]policy.Exception) func() error {
	return func() error {
		var e policy.Exception
		if h.NextArg() {
			return h.ArgErr()
		}
		all := selectorLines(h.Dispenser, &e.Selector)
		all["client_ip"] = texts(h.Dispenser, &e.Networks)
		err := all.read(h.Dispenser, options{}, " of except")
		*to = append(*to, e)
		return err
	}
}

// finish checks that a rule has what it needs, and adds the prefixes of IPv6 networks to the
// address in the key.
func (p *ruleParser) finish() error {
	for _, need := range []struct{ option, example string }{
		{"key", "{client_ip}, for example, or none for one bucket for all requests"},
		{"rate", "5/s or 100/m, for example"},
		{"burst", "the number of tokens that a bucket holds"},
	} {
		if _, ok := p.options[need.option]; !ok {
			return p.options.at(directive).Errf("rule %q has no %s: want %s", p.Name, need.option,
				need.example)
		}
	}
	if len(p.prefixes) == 0 {
		return nil
	}
	i, key := slices.Index(p.Keys, addressKey), addressKey+"/"+strings.Join(p.prefixes, ",/")
	if _, ok := policy.PrefixesOf(key); !ok {
		return p.options.at("ipv6_prefixes").Errf("ipv6_prefixes: want bits from many to few, such as"+
			" 64 56 48 (got %s)", strings.Join(p.prefixes, " "))
	}
	if i < 0 {
		return p.options.at("ipv6_prefixes").Errf("rule %q has ipv6_prefixes, but its key has no"+
			" {client_ip}", p.Name)
	}
	p.Keys[i] = key
	return nil
}

// rate reads a number of tokens and a time, as in 100/m, 5/s or 1/90s.
func (p *ruleParser) rate(_, s string) error {
	number, per, ok := strings.Cut(s, "/")
	if ok && per != "" && !strings.ContainsRune("0123456789.", rune(per[0])) {
		per = "1" + per
	}
	duration, err := caddy.ParseDuration(per)
	if !ok || err != nil || duration <= 0 {
		return p.Errf("rate %q: want a number of tokens and a time, such as 5/s, 100/m or 1/90s", s)
	}
	var tokens float64
	if err := p.positive(number, &tokens); err != nil {
		return err
	}
	limit, err := tb.LimitPerSecond(1, tokens/duration.Seconds())
	if err != nil {
		return p.Errf("rate %q: want 1 token in 292 years to 1e9 tokens a second", s)
	}
	p.Limit.Tokens, p.Limit.Per = limit.Tokens, limit.Per
	return nil
}

// onMissing reads what happens to a request that lacks a part of the key.
func (p *ruleParser) onMissing(_, s string) error {
	names := []string{policy.Skip: "skip", policy.Reject: "reject", policy.Shared: "shared"}
	i := slices.Index(names, s)
	if i < 0 {
		return p.Errf("on_missing is %q, want skip, reject or shared", s)
	}
	p.OnMissing = policy.OnMissing(i)
	return nil
}

// keyKinds begin the keys of a policy that a Caddyfile can use.
var keyKinds = regexp.MustCompile(`^(header|query|cookie):`)

// keys reads the parts of the key. Caddy has replaced {client_ip} by {http.vars.client_ip}.
func (p *ruleParser) keys() error {
	p.Keys = []string{}
	args := p.RemainingArgs()
	switch {
	case len(args) == 0:
		return p.ArgErr()
	case len(args) == 1 && args[0] == "none":
		return nil
	}
	for _, arg := range args {
		if read, err := placeholders(arg); read == nil && err == nil && !keyKinds.MatchString(arg) {
			return p.Errf("key %s: want placeholders such as {client_ip}, header:<name>, query:<name>,"+
				" cookie:<name>, or only none for one bucket for all requests", arg)
		}
		p.Keys = append(p.Keys, nativeKey(arg))
	}
	return nil
}

// nativeKey returns the key of a policy that has the value of a placeholder, or else the text. A
// native key refuses requests that have it twice, and an address has one bucket for its network.
func nativeKey(text string) string {
	rest, isPlaceholder := strings.CutPrefix(text, "{http.")
	name, ends := strings.CutSuffix(rest, "}")
	if !isPlaceholder || !ends || strings.ContainsAny(name, "{}") {
		return text
	}
	switch name {
	case "vars.client_ip":
		return addressKey
	case "request.hostport", "request.host":
		return "header:host"
	}
	for prefix, kind := range map[string]string{
		"request.header.": "header:", "request.uri.query.": "query:", "request.cookie.": "cookie:",
	} {
		if name, ok := strings.CutPrefix(name, prefix); ok {
			return policy.CanonicalKey(kind + name)
		}
	}
	return text
}

// priority reads the key that has the class, and pairs of a class and its share.
func (p *ruleParser) priority() error {
	args := p.RemainingArgs()
	if len(args)%2 == 0 || args[0] == "" {
		return p.ArgErr()
	}
	p.Priority = policy.Priority{By: nativeKey(args[0]), Keep: map[string]float64{}}
	for pair := range slices.Chunk(args[1:], 2) {
		if err := p.number(pair[1], pair[0], p.Priority.Keep); err != nil {
			return err
		}
	}
	return nil
}

// match reads matchers: a path, a matcher with a name, or what would be one. A rule may have
// several, of which one has to match.
func (p *ruleParser) match() error {
	inline := p.CountRemainingArgs() > 0
	set, isToken, err := p.MatcherToken()
	switch {
	case err != nil:
		return p.WrapErr(err)
	case isToken:
		if p.NextArg() {
			return p.ArgErr()
		}
	default:
		if inline {
			p.Prev()
		}
		if set, err = caddyhttp.ParseCaddyfileNestedMatcherSet(p.Dispenser); err != nil {
			return err
		}
	}
	if len(set) == 0 {
		return p.ArgErr()
	}
	p.matchers = append(p.matchers, set)
	return nil
}

// cost reads a number, or a source with its options.
func (p *ruleParser) cost() error {
	args, c := p.RemainingArgs(), &p.Cost
	if len(args) == 0 || args[0] == "" {
		return p.ArgErr()
	}
	if _, err := strconv.ParseFloat(args[0], 64); err == nil {
		if len(args) > 1 {
			return p.ArgErr()
		}
		return p.positive(args[0], &c.Fixed)
	}
	c.Source, c.Statuses = nativeKey(args[0]), map[string]float64{}
	bounds := map[string]*float64{"default": &c.Default, "min": &c.Min, "max": &c.Max}
	for i := 1; i < len(args); i++ {
		name := args[i]
		bound := bounds[name]
		switch isStatus := status.MatchString(name); {
		case bound == nil && !isStatus:
			return p.Errf("unknown option %q of cost", name)
		case i+1 == len(args):
			return p.ArgErr()
		}
		i++
		if bound != nil {
			if err := p.positive(args[i], bound); err != nil {
				return err
			}
			continue
		}
		if err := p.number(args[i], name, c.Statuses); err != nil {
			return err
		}
	}
	return nil
}

// status matches a status, or a class of them.
var status = regexp.MustCompile("^[0-9][0-9x]{2}$")

// positive reads a number of tokens. In JSON, 0 would stand for the default.
func (p *ruleParser) positive(s string, to *float64) error {
	n, err := strconv.ParseFloat(s, 64)
	if *to = n; err != nil || !(n > 0 && n <= math.MaxFloat64) { // NaN fails
		return p.Errf("%q is not a number above 0", s)
	}
	return nil
}

// number reads a number that may be 0.
func (p *ruleParser) number(s, name string, to map[string]float64) error {
	n, err := strconv.ParseFloat(s, 64)
	if to[name] = n; err != nil {
		return p.Errf("%q is not a number", s)
	}
	return nil
}
