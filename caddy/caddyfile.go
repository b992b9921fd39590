package tokenbucket

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

const directive = "token_bucket"

func init() {
	httpcaddyfile.RegisterHandlerDirective(directive, parseDirective)
	// A guess at a password takes a token. The path is the one that rewrites have made.
	httpcaddyfile.RegisterDirectiveOrder(directive, httpcaddyfile.Before, "basic_auth")
}

func parseDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler. docs/caddy.md has the syntax.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name of the directive
	if d.NextArg() {
		h.Name = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	start := *d
	var p policy
	seen := options{}
	for d.NextBlock(0) {
		if err := seen.add(d, "rule"); err != nil {
			return err
		}
		if err := h.unmarshalOption(d, &p); err != nil {
			return err
		}
	}
	if (len(p.Sets) == 0) == (h.PolicyFile == "") {
		return start.Err("want either rules or policy_file")
	}
	if h.PolicyFile != "" {
		return nil
	}
	var err error
	if h.Policy, err = json.Marshal(&p); err != nil {
		return start.WrapErr(err)
	}
	opts, err := h.options()
	if err != nil {
		return start.WrapErr(err)
	}
	if _, err := httplimit.ParsePolicyFor(h.Policy, opts...); err != nil {
		return start.WrapErr(plain(err))
	}
	return nil
}

// unmarshalOption reads one line or block of the directive.
func (h *Handler) unmarshalOption(d *caddyfile.Dispenser, p *policy) error {
	switch d.Val() {
	case "rule":
		s, err := parseRule(d)
		p.Sets = append(p.Sets, s)
		return err
	case "redis":
		return h.unmarshalRedis(d)
	case "policy_file":
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
		return integer(d, &p.MaxWaiting)
	case "max_keys":
		return integer(d, &h.MaxKeys)
	case "ipv4_prefix":
		return integer(d, &h.IPv4Prefix)
	case "ipv6_prefix":
		return integer(d, &h.IPv6Prefix)
	case "policy_field":
		return flag(d, &h.PolicyField)
	case "x_ratelimit":
		return flag(d, &h.XRateLimit)
	case "show_keys":
		return flag(d, &h.ShowKeys)
	}
	return d.Errf("unknown option %q", d.Val())
}

func (h *Handler) unmarshalRedis(d *caddyfile.Dispenser) error {
	h.Redis = &Redis{}
	if err := text(d, &h.Redis.Address); err != nil {
		return err
	}
	seen := options{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := seen.add(d, ""); err != nil {
			return err
		}
		switch d.Val() {
		case "timeout":
			var s string
			if err := text(d, &s); err != nil {
				return err
			}
			timeout, err := caddy.ParseDuration(s)
			if err != nil {
				return d.WrapErr(err)
			}
			h.Redis.Timeout = caddy.Duration(timeout)
		case "on_failure":
			if err := text(d, &h.Redis.OnFailure); err != nil {
				return err
			}
		default:
			return d.Errf("unknown option %q of redis", d.Val())
		}
	}
	return nil
}

// options are the names of the options that a block has so far.
type options map[string]bool

// add adds an option. It returns an error if the block has the option already, unless the option
// may be repeated.
func (o options) add(d *caddyfile.Dispenser, repeatable string) error {
	name := d.Val()
	if o[name] && name != repeatable {
		return d.Errf("%s is there twice", name)
	}
	o[name] = true
	return nil
}

// text reads the one argument of an option.
func text(d *caddyfile.Dispenser, to *string) error {
	if !d.AllArgs(to) {
		return d.ArgErr()
	}
	return nil
}

// integer reads the one argument of an option. In JSON, 0 would stand for the default.
func integer(d *caddyfile.Dispenser, to *int) error {
	var s string
	if err := text(d, &s); err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if *to = n; err != nil || n <= 0 {
		return d.Errf("%q is not a whole number above 0", s)
	}
	return nil
}

// number reads a number of tokens. In JSON, 0 would stand for the default.
func number(d *caddyfile.Dispenser, s string, to *float64) error {
	n, err := strconv.ParseFloat(s, 64)
	if *to = n; err != nil || !(n > 0 && n <= math.MaxFloat64) { // NaN fails
		return d.Errf("%q is not a number above 0", s)
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

var _ caddyfile.Unmarshaler = (*Handler)(nil)
