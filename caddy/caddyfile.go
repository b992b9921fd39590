package tokenbucket

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

const directive = "token_bucket"

func init() {
	httpcaddyfile.RegisterHandlerDirective(directive, parseDirective)
	// A guess at a password takes a token. The path is the one that rewrites have made.
	httpcaddyfile.RegisterDirectiveOrder(directive, httpcaddyfile.Before, "basic_auth")
}

// parser reads a directive. docs/caddy.md has the syntax.
type parser struct {
	httpcaddyfile.Helper
	handler *Handler
	policy  httplimit.Policy
	options options   // of the directive
	rules   []options // of each rule
}

func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	p := parser{Helper: h, handler: &Handler{Matchers: map[string]caddyhttp.RawMatcherSets{}}}
	return p.handler, p.parse()
}

func (p *parser) parse() error {
	p.Next() // the name of the directive
	p.options = options{directive: *p.Dispenser}
	p.setPlace()
	if !p.NextArg() {
		p.handler.Name = p.defaultName()
	} else if p.handler.Name = p.Val(); p.handler.Name == "" || p.NextArg() {
		return p.ArgErr()
	} else if unnamed.MatchString(p.handler.Name) {
		return p.Errf("%s is the name of a directive that has none: want another name", p.handler.Name)
	}
	if err := p.lines().read(p.Dispenser, p.options, ""); err != nil {
		return err
	}
	h := p.handler
	if (len(p.rules) == 0) == (h.PolicyFile == "") {
		return p.options.at(directive).Err("want either rules or policy_file")
	}
	for _, name := range []string{"max_waiting", "except"} {
		if d, ok := p.options[name]; ok && h.PolicyFile != "" {
			return d.Errf("%s belongs in the policy file", name)
		}
	}
	m := matchers{} // their names
	for name := range h.Matchers {
		m[name] = nil
	}
	opts, err := h.options(m.extractor)
	if err != nil || h.PolicyFile != "" {
		return p.explain(err)
	}
	if h.Policy, err = json.Marshal(&p.policy); err != nil {
		return p.explain(err)
	}
	_, err = httplimit.ParsePolicyFor(h.Policy, opts...)
	return p.explain(err)
}

// unnamed matches the names that defaultName returns.
var unnamed = regexp.MustCompile("^" + defaultName + "(-route)?(-[0-9]+)?$")

// defaultName returns the name of a directive that has none, by its place among them. A reload
// finds the same name again, and a snippet that is imported twice has two.
func (p *parser) defaultName() string {
	const count = directive + ".unnamed"
	n, _ := p.State[count].(int)
	p.State[count] = n + 1
	name := defaultName
	if p.IsNamedRoute() { // which Caddy reads first, with a State of their own
		name += "-route"
	}
	if n > 0 {
		name += "-" + strconv.Itoa(n+1)
	}
	return name
}

// setPlace sets the place of the handler to the present line, as in Caddy's own errors: with the
// lines that import it.
func (p *parser) setPlace() {
	p.handler.Caddyfile = strings.TrimPrefix(p.Err("").Error(), ", at ")
}

// lines are the options of the directive.
func (p *parser) lines() lines {
	h, d := p.handler, p.Dispenser
	return lines{
		"rule": p.rule, "except": exception(p.Helper, &p.policy.Except), "redis": p.redis,
		"policy_file": func() error {
			p.setPlace()
			return text(d, &h.PolicyFile)()
		},
		"overflow": text(d, &h.Overflow), "fields": text(d, &h.Fields),
		"reason_field": text(d, &h.ReasonField), "shared_secret": text(d, &h.SharedSecret),
		"max_waiting": integer(d, 1<<20, &p.policy.MaxWaiting),
		"max_keys":    integer(d, 1<<30, &h.MaxKeys),
		"ipv4_prefix": integer(d, 32, &h.IPv4Prefix), "ipv6_prefix": integer(d, 128, &h.IPv6Prefix),
		"policy_field": flag(d, &h.PolicyField), "x_ratelimit": flag(d, &h.XRateLimit),
		"show_keys": flag(d, &h.ShowKeys),
	}
}

func (p *parser) redis() error {
	c := &Redis{}
	p.handler.Redis = c
	if err := text(p.Dispenser, &c.Address)(); err != nil {
		return err
	}
	if !strings.Contains(c.Address, "{") { // a placeholder
		if _, err := redis.ParseAddress(c.Address); err != nil {
			return p.Errf("redis: %w", err)
		}
	}
	return lines{
		"timeout":    duration(p.Dispenser, (*time.Duration)(&c.Timeout)),
		"on_failure": text(p.Dispenser, &c.OnFailure),
	}.read(p.Dispenser, p.options, " of redis")
}

// lines read the lines of a block, by the name of the option.
type lines map[string]func() error

// read reads a block, and adds its options. It returns an error for an option that the block has
// already, unless it may be repeated.
func (l lines) read(d *caddyfile.Dispenser, o options, of string) error {
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		if _, ok := o[name]; ok && !slices.Contains([]string{"rule", "match", "except"}, name) {
			return d.Errf("%s is there twice", name)
		}
		o[name] = *d
		line, ok := l[name]
		if !ok {
			return d.Errf("unknown option %q%s", name, of)
		}
		if err := line(); err != nil {
			return err
		}
	}
	return nil
}

// options are the options that a block has so far, each at its place, and the block itself.
type options map[string]caddyfile.Dispenser

// at returns the place of an option, or of the block if it does not have the option.
func (o options) at(name string) *caddyfile.Dispenser {
	d, ok := o[name]
	if !ok {
		d = o[directive]
	}
	return &d
}

// The functions below return the function that reads the arguments of an option. In JSON, 0 or ""
// would stand for the default. {$NAME} is "" if the environment has no such variable.

// argument is an option with one argument, which read gets with the name of the option.
func argument(d *caddyfile.Dispenser, read func(name, s string) error) func() error {
	return func() error {
		name := d.Val()
		var s string
		if !d.AllArgs(&s) || s == "" {
			return d.ArgErr()
		}
		return read(name, s)
	}
}

func text(d *caddyfile.Dispenser, to *string) func() error {
	return argument(d, func(_, s string) error {
		*to = s
		return nil
	})
}

func integer(d *caddyfile.Dispenser, most int, to *int) func() error {
	return argument(d, func(_, s string) error {
		n, err := strconv.Atoi(s)
		if *to = n; err != nil || n <= 0 || n > most {
			return d.Errf("%q is not a whole number from 1 to %d", s, most)
		}
		return nil
	})
}

func duration(d *caddyfile.Dispenser, to *time.Duration) func() error {
	return argument(d, func(name, s string) (err error) {
		if *to, err = caddy.ParseDuration(s); err != nil || *to <= 0 {
			return d.Errf("%s is %q, want a time such as 20ms", name, s)
		}
		return nil
	})
}

func flag(d *caddyfile.Dispenser, to *bool) func() error {
	return func() error {
		*to = true
		if d.NextArg() {
			return d.ArgErr()
		}
		return nil
	}
}

func texts(d *caddyfile.Dispenser, to *[]string) func() error {
	return func() error {
		if *to = d.RemainingArgs(); len(*to) == 0 {
			return d.ArgErr()
		}
		return nil
	}
}
