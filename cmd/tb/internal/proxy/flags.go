package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cidr"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Validate returns an error for a flag that is out of range or contradicts another.
func (c *Command) Validate() error {
	if _, err := tb.Apply(c.limiterOptions()...); err != nil {
		return fmt.Errorf("--max-keys: %w", err)
	}
	for _, option := range []struct {
		flag string
		httplimit.Option
	}{
		{"--client-address-header", httplimit.WithClientAddress(httplimit.ClientAddress{
			Header: c.ClientAddressHeader})},
		{"--reason-field", httplimit.WithReasonField(c.reasonField())},
	} {
		if _, err := httplimit.New(httplimit.Rules(), option.Option); err != nil {
			return fmt.Errorf("%s: %w", option.flag, err)
		}
	}
	switch {
	case c.Timeout < 0, c.Delay < 0, c.Shutdown < 0, c.HeaderTimeout < 0, c.BodyTimeout < 0:
		return errors.New("--upstream-timeout, --shutdown-delay, --shutdown-timeout," +
			" --header-timeout, --body-timeout: want 0s or more")
	case c.IPv4Prefix < 1, c.IPv4Prefix > 32:
		return errors.New("--ipv4-prefix: want 1 to 32 bits")
	case c.IPv6Prefix < 1, c.IPv6Prefix > 128:
		return errors.New("--ipv6-prefix: want 1 to 128 bits")
	case c.MaxKeyLength < 32, c.MaxKeyLength > 1024:
		return errors.New("--max-key-length: want 32 to 1024 bytes")
	case c.PerAddress < 0:
		return errors.New("--connections-per-address: want 0 or more")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert, --tls-key: want both or neither")
	}
	return nil
}

// limiterOptions returns the options of the rules' limiters.
func (c *Command) limiterOptions() []tb.Option {
	overflow := tb.ForgiveLeast
	if c.Overflow == "refuse" {
		overflow = tb.RefuseNew
	}
	return []tb.Option{tb.WithMaxKeys(c.MaxKeys), tb.WithOverflow(overflow)}
}

// options returns the options of the limiter that Config has no field for.
func (c *Command) options() []httplimit.Option {
	return []httplimit.Option{
		httplimit.WithReasonField(c.reasonField()), httplimit.WithJitterSalt(c.JitterSalt),
		httplimit.WithMaxKeyLength(c.MaxKeyLength),
	}
}

func (c *Command) reasonField() string {
	if c.ReasonField == off {
		return ""
	}
	return c.ReasonField
}

func (c *Command) clientAddress() httplimit.ClientAddress {
	return httplimit.ClientAddress{
		Trusted: cidr.Prefixes(c.Trusted), Header: c.ClientAddressHeader,
		IPv4Bits: c.IPv4Prefix, IPv6Bits: c.IPv6Prefix,
	}
}

// logRisks warns about flags that leave a door open.
func (r *runner) logRisks() {
	for _, n := range r.Trusted {
		if trustsThePublic(n.Prefix) {
			r.log.Warn("clients in this network name their own address, and so choose their bucket",
				"flag", "--trusted-proxies", "value", n.String())
		}
	}
	if l := r.adminListener; l != nil && !isLoopback(l) {
		r.log.Warn("every client that reaches this address can read the live page and the metrics",
			"flag", "--admin", "value", r.Admin)
	}
}

// trustsThePublic reports whether a network has more than proxies: it is larger than the networks
// that one organisation gets, and not private.
func trustsThePublic(p netip.Prefix) bool {
	p = p.Masked()
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	if p.Addr().Is4() {
		return p.Bits() < 8
	}
	isPrivate := p.Addr().IsPrivate() && p.Bits() >= 7 ||
		p.Addr().IsLinkLocalUnicast() && p.Bits() >= 10
	return p.Bits() < 16 && !isPrivate
}

// warnings returns the warnings about a policy, also of rules that can never apply in a proxy
// that drops fields with _ in their names.
func (p *Proxy) warnings(policy *httplimit.Policy) []string {
	all := policy.Warnings()
	if p.Underscores {
		return all
	}
	for _, set := range policy.Sets {
		rules := set.Rules
		if set.Fallback != nil {
			rules = append(slices.Clone(rules), *set.Fallback)
		}
		for _, rule := range rules {
			names := append(slices.Clone(rule.Keys), rule.Cost.Source)
			for name := range rule.Match {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				if strings.HasPrefix(name, "header:") && strings.Contains(name, "_") {
					all = append(all, fmt.Sprintf("rule %s reads %s, which is dropped from every"+
						" request without --underscores-in-headers", rule.Name, name))
				}
			}
		}
	}
	return all
}
