package tokenbucket

import (
	"encoding/json"
	"math"
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
	p := parser{Helper: h, handler: new(Handler)}
	return p.handler, p.parse()
}

func (p *parser) parse() error {
	p.Next() // the name of the directive
	p.options = newOptions(p.Dispenser)
	p.setPlace()
	if !p.NextArg() {
		p.handler.Name = p.defaultName()
	} else if p.handler.Name = p.Val(); p.NextArg() {
		return p.ArgErr()
	}
	for p.NextBlock(0) {
		if err := p.options.add(p.Dispenser, "rule", "except"); err != nil {
			return err
		}
		if err := p.option(); err != nil {
			return err
		}
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

// option reads one line or block of the directive.
func (p *parser) option() error {
	h, d := p.handler, p.Dispenser
	switch d.Val() {
	case "rule":
		return p.rule()
	case "except":
		return except(p.Helper, &p.policy.Except)
	case "redis":
		return p.redis()
	case "policy_file":
		p.setPlace()
		return text(d, &h.PolicyFile)
	case "overflow":
		return text(d, &h.Overflow)
	case "fields":
		return text(d, &h.Fields)
	case "reason_field":
		return text(d, &h.ReasonField)
	case "shared_secret":
		return text(d, &h.SharedSecret)
	case "max_waiting":
		return integer(d, 1<<20, &p.policy.MaxWaiting)
	case "max_keys":
		return integer(d, 1<<30, &h.MaxKeys)
	case "ipv4_prefix":
		return integer(d, 32, &h.IPv4Prefix)
	case "ipv6_prefix":
		return integer(d, 128, &h.IPv6Prefix)
	case "policy_field":
		return flag(d, &h.PolicyField)
	case "x_ratelimit":
		return flag(d, &h.XRateLimit)
	case "show_keys":
		return flag(d, &h.ShowKeys)
	}
	return d.Errf("unknown option %q", d.Val())
}

func (p *parser) redis() error {
	c := &Redis{}
	p.handler.Redis = c
	if err := text(p.Dispenser, &c.Address); err != nil {
		return err
	}
	if !strings.Contains(c.Address, "{") { // a placeholder
		if _, err := redis.ParseAddress(c.Address); err != nil {
			return p.Errf("redis: %w", err)
		}
	}
	for nesting := p.Nesting(); p.NextBlock(nesting); {
		if err := p.options.add(p.Dispenser); err != nil {
			return err
		}
		switch p.Val() {
		case "timeout":
			if err := duration(p.Dispenser, (*time.Duration)(&c.Timeout)); err != nil {
				return err
			}
		case "on_failure":
			if err := text(p.Dispenser, &c.OnFailure); err != nil {
				return err
			}
		default:
			return p.Errf("unknown option %q of redis", p.Val())
		}
	}
	return nil
}

// options are the options that a block has so far, each at its place, and the block itself.
type options map[string]caddyfile.Dispenser

// newOptions returns the options of a block that begins here.
func newOptions(d *caddyfile.Dispenser) options { return options{directive: *d} }

// add adds an option. It returns an error if the block has the option already, unless the option
// may be repeated.
func (o options) add(d *caddyfile.Dispenser, repeatable ...string) error {
	name := d.Val()
	if _, ok := o[name]; ok && !slices.Contains(repeatable, name) {
		return d.Errf("%s is there twice", name)
	}
	o[name] = *d
	return nil
}

// at returns the place of an option, or of the block if it does not have the option.
func (o options) at(name string) *caddyfile.Dispenser {
	d, ok := o[name]
	if !ok {
		d = o[directive]
	}
	return &d
}

// text reads the one argument of an option.
func text(d *caddyfile.Dispenser, to *string) error {
	if !d.AllArgs(to) {
		return d.ArgErr()
	}
	return nil
}

// integer reads the one argument of an option. In JSON, 0 would stand for the default.
func integer(d *caddyfile.Dispenser, most int, to *int) error {
	var s string
	if err := text(d, &s); err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if *to = n; err != nil || n <= 0 || n > most {
		return d.Errf("%q is not a whole number from 1 to %d", s, most)
	}
	return nil
}

// positive reads a number of tokens. In JSON, 0 would stand for the default.
func positive(d *caddyfile.Dispenser, s string, to *float64) error {
	n, err := strconv.ParseFloat(s, 64)
	if *to = n; err != nil || !(n > 0 && n <= math.MaxFloat64) { // NaN fails
		return d.Errf("%q is not a number above 0", s)
	}
	return nil
}

// duration reads the one argument of an option. In JSON, 0 would stand for the default.
func duration(d *caddyfile.Dispenser, to *time.Duration) (err error) {
	name := d.Val()
	var s string
	if err := text(d, &s); err != nil {
		return err
	}
	if *to, err = caddy.ParseDuration(s); err != nil || *to <= 0 {
		return d.Errf("%s is %q, want a time such as 20ms", name, s)
	}
	return nil
}

func flag(d *caddyfile.Dispenser, to *bool) error {
	*to = true
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}
