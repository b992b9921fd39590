package tokenbucket

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// Settings are what a limiter keeps as long as it lives, except its Look. A limiter with other
// settings is another limiter, with full buckets unless they are in Redis.
type Settings struct {
	// MaxKeys is how many keys each rule has at most. The default is 1,048,576.
	MaxKeys int `json:"max_keys,omitempty"`
	// Overflow is what happens to a new key while no bucket is full: "forgive" the smallest debt,
	// which is the default, or "refuse" the key.
	Overflow string `json:"overflow,omitempty"`
	// IPv4Prefix and IPv6Prefix are how many bits of an address make a client. The defaults are 32
	// and 64.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`
	// Redis has the buckets, if it is there.
	Redis *Redis `json:"redis,omitempty"`
	Look
}

// Look is the settings that change no bucket, so that a limiter with another look is the same one.
type Look struct {
	// Fields is which responses have the RateLimit fields: "all", which is the default, or those to
	// "refused" requests only.
	Fields string `json:"fields,omitempty"`
	// PolicyField sends RateLimit-Policy, too.
	PolicyField bool `json:"policy_field,omitempty"`
	// XRateLimit sends X-RateLimit-Limit, -Remaining and -Reset, too.
	XRateLimit bool `json:"x_ratelimit,omitempty"`
	// ReasonField is the field that has the reason of a refusal. The default is none.
	ReasonField string `json:"reason_field,omitempty"`
	// SharedSecret is the same text for all servers of the same clients: the jitter of Retry-After is
	// derived from it.
	SharedSecret string `json:"shared_secret,omitempty"`
}

// fields returns which fields responses have.
func (k *Look) fields() httplimit.Fields {
	return httplimit.Fields{
		OnlyRefused: k.Fields == "refused", Policy: k.PolicyField, XRateLimit: k.XRateLimit,
		Reason: k.ReasonField,
	}
}

// limiter returns a limiter with a policy. The store may be nil.
func (s *Settings) limiter(
	p *httplimit.Policy, store *redis.Store, find extractors,
) (*httplimit.Limiter, error) {
	opts, err := s.options(find)
	if err != nil {
		return nil, err
	}
	if store != nil {
		opts = append(opts, httplimit.WithStore(store))
	}
	return httplimit.New(p, opts...)
}

// extractors returns the function that reads a key, or nil: see matchers.extractor.
type extractors = func(key string) (func(*http.Request) string, error)

// options returns the options of the limiter, apart from the store. An error begins with the name
// of the setting.
func (s *Settings) options(find extractors) ([]httplimit.Option, error) {
	o := []httplimit.Option{
		httplimit.WithoutClaims(),
		httplimit.WithFoldedPaths(), // as Caddy's path matcher
		httplimit.WithExtractors(find),
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Find: clientAddress, IPv4Bits: s.IPv4Prefix, IPv6Bits: s.IPv6Prefix,
		}),
		httplimit.WithSharedSecret(s.SharedSecret), httplimit.WithFields(s.fields()),
		httplimit.WithHooks(httplimit.Hooks{
			Delayed: blame, Refused: blame, Shadow: shadow, Error: failed,
		}),
	}
	if s.MaxKeys != 0 {
		o = append(o, httplimit.WithLimiterOptions(tb.WithMaxKeys(s.MaxKeys)))
	}
	server := cmp.Or(s.Redis, new(Redis))
	for _, c := range []struct{ name, value, usual, other string }{
		{"overflow", s.Overflow, "forgive", "refuse"}, {"fields", s.Fields, "all", "refused"},
		{"on_failure", server.OnFailure, "allow", "refuse"},
	} {
		if c.value != "" && c.value != c.usual && c.value != c.other {
			return nil, fmt.Errorf("%s is %q, want %s or %s", c.name, c.value, c.usual, c.other)
		}
	}
	if s.Overflow == "refuse" {
		o = append(o, httplimit.WithLimiterOptions(tb.WithOverflow(tb.RefuseNew)))
	}
	if server.OnFailure == "refuse" {
		o = append(o, httplimit.WithFailClosed())
	}
	return o, nil
}
