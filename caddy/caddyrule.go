package tokenbucket

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

const addressKey = "ip:address"

// ruleName is what names a rule. A matcher is not a name.
var ruleName = regexp.MustCompile(`^[0-9A-Za-z_][ -~]*$`)

// rule reads a rule.
func (p *parser) rule() error {
	r := ruleParser{Helper: p.Helper, options: newOptions(p.Dispenser)}
	if err := text(p.Dispenser, &r.Name); err != nil {
		return err
	}
	if !ruleName.MatchString(r.Name) {
		return p.Errf("%q is not a name, which is ASCII and begins with a letter or a digit: matchers"+
			" stand in the rule, as in match /api/*", r.Name)
	}
	for i, other := range p.policy.Sets {
		if other.Name == r.Name {
			return p.Errf("rule %q is there twice: the first is in line %d", r.Name,
				p.rules[i].at(directive).Line())
		}
	}
	for nesting := p.Nesting(); p.NextBlock(nesting); {
		if err := r.options.add(p.Dispenser, "match", "except"); err != nil {
			return err
		}
		if err := r.line(); err != nil {
			return err
		}
	}
	if err := r.finish(); err != nil {
		return err
	}
	if r.matchers != nil {
		if p.handler.Matchers == nil {
			p.handler.Matchers = map[string]caddyhttp.RawMatcherSets{}
		}
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
	i := slices.Index(p.Keys, addressKey)
	if i < 0 {
		return p.options.at("ipv6_prefixes").Errf("rule %q has ipv6_prefixes, but its key has no"+
			" {client_ip}", p.Name)
	}
	p.Keys[i] += "/" + strings.Join(p.prefixes, ",/")
	return nil
}

func (p *ruleParser) line() error {
	switch p.Val() {
	case "rate":
		return p.rate()
	case "burst":
		return integer(p.Dispenser, tb.MaxCapacity, &p.Limit.Capacity)
	case "key":
		return p.keys()
	case "ipv6_prefixes":
		return p.networks()
	case "method":
		return p.methods()
	case "host":
		p.selector.Hosts = p.RemainingArgs()
		return p.want(len(p.selector.Hosts) > 0)
	case "path":
		return p.paths()
	case "match":
		return p.match()
	case "except":
		return except(p.Helper, &p.Except)
	case "cost":
		return p.cost()
	case "on_missing":
		return p.onMissing()
	case "delay":
		p.OnLimit = policy.Delay
		return duration(p.Dispenser, &p.MaxDelay)
	case "block":
		return duration(p.Dispenser, &p.Block)
	case "priority":
		return p.priority()
	case "shadow":
		return flag(p.Dispenser, &p.Shadow)
	default:
		return p.Errf("unknown option %q of a rule", p.Val())
	}
}

// want returns an error if the arguments are not right.
func (p *ruleParser) want(right bool) error {
	if !right {
		return p.ArgErr()
	}
	return nil
}

// rate reads a number of tokens and a time, as in 100/m, 5/s or 1/90s.
func (p *ruleParser) rate() error {
	var s string
	if err := text(p.Dispenser, &s); err != nil {
		return err
	}
	number, per, ok := strings.Cut(s, "/")
	if ok && per != "" && !strings.ContainsRune("0123456789.", rune(per[0])) {
		per = "1" + per
	}
	duration, err := caddy.ParseDuration(per)
	if !ok || err != nil || duration <= 0 {
		return p.Errf("rate %q: want a number of tokens and a time, such as 5/s, 100/m or 1/90s", s)
	}
	var tokens float64
	if err := positive(p.Dispenser, number, &tokens); err != nil {
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
func (p *ruleParser) onMissing() error {
	var s string
	if err := text(p.Dispenser, &s); err != nil {
		return err
	}
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
	if len(args) == 1 && args[0] == "none" {
		return nil
	}
	for _, arg := range args {
		if read, err := placeholders(arg); read == nil && err == nil && !keyKinds.MatchString(arg) {
			return p.Errf("key %s: want placeholders such as {client_ip}, header:<name>, query:<name>,"+
				" cookie:<name>, or only none for one bucket for all requests", arg)
		}
		p.Keys = append(p.Keys, nativeKey(arg))
	}
	return p.want(len(args) > 0)
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
	if field, ok := strings.CutPrefix(name, "request.header."); ok {
		return "header:" + strings.ToLower(field)
	}
	if parameter, ok := strings.CutPrefix(name, "request.uri.query."); ok {
		return "query:" + parameter
	}
	if cookie, ok := strings.CutPrefix(name, "request.cookie."); ok {
		return "cookie:" + cookie
	}
	return text
}

// priority reads the key that has the class, and pairs of a class and its share.
func (p *ruleParser) priority() error {
	args := p.RemainingArgs()
	if len(args)%2 == 0 {
		return p.ArgErr()
	}
	p.Priority = policy.Priority{By: nativeKey(args[0]), Keep: map[string]float64{}}
	for pair := range slices.Chunk(args[1:], 2) {
		share, err := strconv.ParseFloat(pair[1], 64)
		if err != nil {
			return p.Errf("%q is not a number", pair[1])
		}
		p.Priority.Keep[pair[0]] = share
	}
	return nil
}

// networks reads the prefixes of IPv6 networks.
func (p *ruleParser) networks() error {
	p.prefixes = p.RemainingArgs()
	longer := 129
	for _, arg := range p.prefixes {
		bits, err := strconv.Atoi(arg)
		if err != nil || bits < 1 || bits >= longer {
			return p.Errf("ipv6_prefixes: want bits from many to few, such as 64 56 48 (got %s)", arg)
		}
		longer = bits
	}
	return p.want(len(p.prefixes) > 0)
}

// method matches the name of a method, and no matcher.
var method = regexp.MustCompile(`^[A-Za-z-]+$`)

func (p *ruleParser) methods() error {
	p.selector.Methods = p.RemainingArgs()
	for _, name := range p.selector.Methods {
		if !method.MatchString(name) {
			return p.Errf("method %s: want methods such as GET", name)
		}
	}
	return p.want(len(p.selector.Methods) > 0)
}

// paths reads an exact path, a prefix such as /api/*, or both.
func (p *ruleParser) paths() error {
	args := p.RemainingArgs()
	for _, arg := range args {
		field := &p.selector.PathExact
		path, isPrefix := strings.CutSuffix(arg, "*")
		if isPrefix {
			field = &p.selector.PathPrefix
		}
		if *field != "" || strings.Contains(path, "*") {
			return p.Errf("path %q: want at most one path and one prefix such as /api/*", arg)
		}
		*field = path
	}
	return p.want(len(args) > 0)
}

// except reads requests that are not limited.
func except(h httpcaddyfile.Helper, to *[]policy.Exception) error {
	var e policy.Exception
	p := ruleParser{Helper: h, options: options{}}
	if p.NextArg() {
		return p.ArgErr()
	}
	for nesting := p.Nesting(); p.NextBlock(nesting); {
		err := p.options.add(p.Dispenser)
		switch {
		case err != nil:
		case p.Val() == "client_ip":
			e.Networks = p.RemainingArgs()
			err = p.want(len(e.Networks) > 0)
		case slices.Contains([]string{"host", "method", "path"}, p.Val()):
			err = p.line()
		default:
			err = p.Errf("unknown option %q of except", p.Val())
		}
		if err != nil {
			return err
		}
	}
	e.Selector = p.selector
	*to = append(*to, e)
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
	p.matchers = append(p.matchers, set)
	return p.want(len(set) > 0)
}

// cost reads a number, or a source with its options.
func (p *ruleParser) cost() error {
	args := p.RemainingArgs()
	if len(args) == 0 {
		return p.ArgErr()
	}
	if _, err := strconv.ParseFloat(args[0], 64); err == nil {
		if len(args) > 1 {
			return p.ArgErr()
		}
		return positive(p.Dispenser, args[0], &p.Cost.Fixed)
	}
	p.Cost.Source = nativeKey(args[0])
	statuses := map[string]float64{}
	for i := 1; i < len(args); i++ {
		var to *float64
		switch args[i] {
		case "hide":
			p.Cost.HideHeader = true
			continue
		case "default":
			to = &p.Cost.Default
		case "min":
			to = &p.Cost.Min
		case "max":
			to = &p.Cost.Max
		default:
			if !status.MatchString(args[i]) {
				return p.Errf("unknown option %q of cost", args[i])
			}
		}
		if i++; i == len(args) {
			return p.ArgErr()
		}
		if to == nil {
			n, err := strconv.ParseFloat(args[i], 64)
			if err != nil {
				return p.Errf("%q is not a number", args[i])
			}
			statuses[args[i-1]] = n
			p.Cost.Statuses = statuses
		} else if err := positive(p.Dispenser, args[i], to); err != nil {
			return err
		}
	}
	return nil
}

// status matches a status, or a class of them.
var status = regexp.MustCompile("^[0-9][0-9x]{2}$")
