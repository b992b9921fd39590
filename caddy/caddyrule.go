package tokenbucket

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// policy is a policy in the JSON format of docs/policy.md. Each rule of a Caddyfile is a set, so
// that it applies whatever the other rules do.
type policy struct {
	Sets       []ruleSet `json:"policies"`
	MaxWaiting int       `json:"max_waiting,omitempty"`
}

type ruleSet struct {
	ID   string `json:"id"`
	Spec spec   `json:"spec"`
}

type spec struct {
	Selector *selector `json:"selector,omitempty"`
	Rules    []rule    `json:"rules"`
}

type selector struct {
	Methods    []string `json:"methods,omitempty"`
	Hosts      []string `json:"hosts,omitempty"`
	PathExact  string   `json:"pathExact,omitempty"`
	PathPrefix string   `json:"pathPrefix,omitempty"`
}

type rule struct {
	Name      string            `json:"name"`
	Keys      []string          `json:"limit_keys"`
	Match     map[string]string `json:"match,omitempty"`
	OnMissing string            `json:"on_missing,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	OnLimit   string            `json:"on_limit,omitempty"`
	MaxDelay  string            `json:"max_delay,omitempty"`
	Limit     limit             `json:"algorithm_config"`
}

type limit struct {
	Rate         float64 `json:"tokens_per_second"`
	Burst        int     `json:"burst"`
	ParentFactor int     `json:"parent_factor,omitempty"`
	CostSource   string  `json:"cost_source,omitempty"`
	FixedCost    float64 `json:"fixed_cost,omitempty"`
	DefaultCost  float64 `json:"default_cost,omitempty"`
	MinCost      float64 `json:"min_cost,omitempty"`
	MaxCost      float64 `json:"max_cost,omitempty"`
	HideCost     bool    `json:"hide_cost_header,omitempty"`
}

// parseRule reads a rule of a Caddyfile. Errors of the rule as a whole have its first line.
func parseRule(d *caddyfile.Dispenser) (ruleSet, error) {
	start := *d
	p := ruleParser{Dispenser: d}
	if err := text(d, &p.Name); err != nil {
		return ruleSet{}, err
	}
	seen := options{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := seen.add(d, "match"); err != nil {
			return ruleSet{}, err
		}
		if err := p.line(); err != nil {
			return ruleSet{}, err
		}
	}
	if !p.hasKey {
		return ruleSet{}, start.Errf("rule %q has no key: want {client_ip}, for example, or none for one"+
			" bucket for all requests", p.Name)
	}
	if err := p.addPrefixes(&start); err != nil {
		return ruleSet{}, err
	}
	s := ruleSet{ID: p.Name, Spec: spec{Rules: []rule{p.rule}}}
	if p.selects {
		s.Spec.Selector = &p.selector
	}
	document, err := json.Marshal(p.rule)
	if err == nil {
		_, err = httplimit.ParsePolicyFor(document, httplimit.WithoutClaims(),
			httplimit.WithExtractors(placeholders))
	}
	if err != nil {
		return s, start.Errf("rule %q: %s", p.Name, strings.TrimPrefix(plain(err).Error(), "policy:\n"))
	}
	return s, nil
}

// ruleParser reads the lines of a rule.
type ruleParser struct {
	*caddyfile.Dispenser
	rule
	selector selector
	selects  bool
	hasKey   bool
	prefixes []string // of ip:address
}

func (p *ruleParser) line() error {
	switch option := p.Val(); option {
	case "rate":
		return p.rate()
	case "burst":
		return integer(p.Dispenser, &p.Limit.Burst)
	case "key":
		return p.keys()
	case "ipv6_prefixes":
		p.prefixes = p.RemainingArgs()
		return p.want(len(p.prefixes) > 0)
	case "parent_factor":
		return integer(p.Dispenser, &p.Limit.ParentFactor)
	case "method":
		p.selects, p.selector.Methods = true, p.RemainingArgs()
		return p.want(len(p.selector.Methods) > 0)
	case "host":
		p.selects, p.selector.Hosts = true, p.RemainingArgs()
		return p.want(len(p.selector.Hosts) > 0)
	case "path":
		return p.paths()
	case "match":
		return p.match()
	case "cost":
		return p.cost()
	case "on_missing":
		return text(p.Dispenser, &p.OnMissing)
	case "delay":
		p.OnLimit = "delay"
		return text(p.Dispenser, &p.MaxDelay)
	case "shadow":
		p.Mode = "shadow"
		return p.want(!p.NextArg())
	default:
		return p.Errf("unknown option %q of a rule", option)
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
	tokens, per, ok := strings.Cut(s, "/")
	if ok && per != "" && !strings.ContainsRune("0123456789.", rune(per[0])) {
		per = "1" + per
	}
	duration, err := caddy.ParseDuration(per)
	if !ok || err != nil || duration <= 0 {
		return p.Errf("rate %q: want a number of tokens and a time, such as 5/s, 100/m or 1/90s", s)
	}
	if err := number(p.Dispenser, tokens, &p.Limit.Rate); err != nil {
		return err
	}
	p.Limit.Rate /= duration.Seconds()
	return nil
}

// keys reads the parts of the key. Caddy has replaced {client_ip} by {http.vars.client_ip}.
func (p *ruleParser) keys() error {
	p.hasKey, p.Keys = true, []string{}
	args := p.RemainingArgs()
	if len(args) == 1 && args[0] == "none" {
		return nil
	}
	for _, arg := range args {
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
		return "ip:address"
	case "request.hostport", "request.host":
		return "header:host"
	}
	if field, ok := strings.CutPrefix(name, "request.header."); ok {
		return "header:" + strings.ToLower(field)
	}
	if parameter, ok := strings.CutPrefix(name, "request.uri.query."); ok {
		return "query:" + parameter
	}
	return text
}

// addPrefixes adds the prefixes of IPv6 networks to the address in the key.
func (p *ruleParser) addPrefixes(start *caddyfile.Dispenser) error {
	if len(p.prefixes) == 0 {
		return nil
	}
	for i, k := range p.Keys {
		if k == "ip:address" {
			p.Keys[i] += "/" + strings.Join(p.prefixes, ",/")
			return nil
		}
	}
	return start.Errf("rule %q has ipv6_prefixes, but its key has no {client_ip}", p.Name)
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
	p.selects = true
	return p.want(len(args) > 0)
}

// match reads a key and the value that it must have.
func (p *ruleParser) match() error {
	var key, value string
	if !p.AllArgs(&key, &value) {
		return p.ArgErr()
	}
	if p.Match == nil {
		p.Match = map[string]string{}
	}
	key = nativeKey(key)
	if _, ok := p.Match[key]; ok {
		return p.Errf("match %s is there twice", key)
	}
	p.Match[key] = value
	return nil
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
		return number(p.Dispenser, args[0], &p.Limit.FixedCost)
	}
	p.Limit.CostSource = nativeKey(args[0])
	for i := 1; i < len(args); i++ {
		var to *float64
		switch args[i] {
		case "hide":
			p.Limit.HideCost = true
			continue
		case "default":
			to = &p.Limit.DefaultCost
		case "min":
			to = &p.Limit.MinCost
		case "max":
			to = &p.Limit.MaxCost
		default:
			return p.Errf("unknown option %q of cost", args[i])
		}
		if i++; i == len(args) {
			return p.ArgErr()
		}
		if err := number(p.Dispenser, args[i], to); err != nil {
			return err
		}
	}
	return nil
}
