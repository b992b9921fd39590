package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Validate returns an error for a flag that is out of range or contradicts another.
func (c *Command) Validate() error {
	if _, err := tb.Apply(c.limiterOptions()...); err != nil {
		return fmt.Errorf("--max-keys=%d: want a whole number, 1 to %d", c.MaxKeys, 1<<30)
	}
	for _, option := range []struct {
		flag string
		httplimit.Option
	}{
		{"--client-address-header", httplimit.WithClientAddress(httplimit.ClientAddress{
			Header: c.ClientAddressHeader})},
		{"--reason-field", httplimit.WithFields(c.fields())},
	} {
		if _, err := httplimit.New(httplimit.Rules(), option.Option); err != nil {
			return fmt.Errorf("%s: %w", option.flag, err)
		}
	}
	if err := cli.NotNegative(map[string]time.Duration{
		"--upstream-timeout": c.Timeout, "--shutdown-delay": c.Delay,
		"--shutdown-timeout": c.Shutdown, "--header-timeout": c.HeaderTimeout,
		"--body-timeout": c.BodyTimeout,
	}); err != nil {
		return err
	}
	switch {
	case c.IPv4Prefix < 1, c.IPv4Prefix > 32:
		return errors.New("--ipv4-prefix: want 1 to 32 bits")
	case c.IPv6Prefix < 1, c.IPv6Prefix > 128:
		return errors.New("--ipv6-prefix: want 1 to 128 bits")
	case c.Interval <= 0:
		return errors.New("--state-interval: want more than 0s")
	case c.RedisTimeout < time.Millisecond:
		return errors.New("--redis-timeout: want at least 1ms")
	case c.Redis.IsSet() && (c.State != "" || c.MaxKeys != tb.DefaultMaxKeys ||
		c.Overflow != "forgive" || c.Policy == off):
		return errors.New("--redis: want no --state, --max-keys, --overflow or --policy=off," +
			" because the buckets are not in memory")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert, --tls-key: want both or neither")
	}
	return nil
}

func (c *Command) limiterOptions() []tb.Option {
	return []tb.Option{tb.WithMaxKeys(c.MaxKeys), tb.WithOverflow(cli.Overflow(c.Overflow))}
}

func (r *runner) options() []httplimit.Option {
	o := []httplimit.Option{
		httplimit.WithLimiterOptions(r.limiterOptions()...),
		httplimit.WithSharedSecret(r.SharedSecret),
	}
	if r.store != nil {
		o = append(o, httplimit.WithStore(r.store))
	}
	if r.RedisFailure == "refuse" {
		o = append(o, httplimit.WithFailClosed())
	}
	return o
}

func (c *Command) fields() httplimit.Fields {
	return httplimit.Fields{
		OnlyRefused: c.Fields == "refused", Policy: c.PolicyField, XRateLimit: c.XRateLimit,
		Reason: c.ReasonField,
	}
}

func (c *Command) clientAddress() httplimit.ClientAddress {
	return httplimit.ClientAddress{
		Trusted: cli.Prefixes(c.Trusted), Header: c.ClientAddressHeader,
		IPv4Bits: c.IPv4Prefix, IPv6Bits: c.IPv6Prefix,
	}
}

func (r *runner) logRisks() {
	for _, n := range r.Trusted {
		bits := n.Bits()
		if n.Addr().Is4In6() {
			bits -= 96
		}
		if bits < 7 { // the largest private networks are 10.0.0.0/8 and fc00::/7
			r.Log.Warn("clients in this network name their own address, and so choose their bucket",
				"flag", "--trusted-proxies", "value", n.String())
		}
	}
	if r.IPv6Prefix > 64 {
		r.Log.Warn("a client usually has a whole /64 of IPv6, and so many buckets",
			"flag", "--ipv6-prefix", "value", r.IPv6Prefix)
	}
	if r.adminListener != nil {
		daemon.WarnOfAdmin(r.Log, r.adminListener, r.Admin)
	}
}
