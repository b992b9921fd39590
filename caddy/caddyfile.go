package tokenbucket

import (
	"encoding/json"
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
	for d.NextBlock(0) {
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
	case "jitter_salt":
		return text(d, &h.JitterSalt)
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
	for nesting := d.Nesting(); d.NextBlock(nesting); {
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

// text reads the one argument of an option.
func text(d *caddyfile.Dispenser, to *string) error {
	if !d.AllArgs(to) {
		return d.ArgErr()
	}
	return nil
}

func integer(d *caddyfile.Dispenser, to *int) error {
	var s string
	if err := text(d, &s); err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if *to = n; err != nil {
		return d.Errf("%q is not a whole number", s)
	}
	return nil
}

func number(d *caddyfile.Dispenser, s string, to *float64) error {
	n, err := strconv.ParseFloat(s, 64)
	if *to = n; err != nil {
		return d.Errf("%q is not a number", s)
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
