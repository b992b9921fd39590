package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/cli"
	"github.com/seed-181794aa/ratelimit/tb"
)

// SuggestedPolicy is a limit as a policy of one rule: see docs/policy.md.
type SuggestedPolicy struct {
	Name      string          `json:"name"`
	Keys      []string        `json:"limit_keys"`
	OnMissing string          `json:"on_missing,omitempty"`
	Algorithm string          `json:"algorithm"`
	Config    algorithmConfig `json:"algorithm_config"`
}

type algorithmConfig struct {
	TokensPerSecond float64 `json:"tokens_per_second"`
	Burst           uint64  `json:"burst"`
	FixedCost       float64 `json:"fixed_cost,omitempty"`
}

// addPolicy adds the limit as a policy that tb proxy accepts, or the reason why there is none.
func (l *SuggestedLimit) addPolicy(o *Options) {
	p := &SuggestedPolicy{Name: "suggested", Algorithm: "token_bucket"}
	for _, part := range o.Keys {
		key, ok := policyKey(part, o.IPv6Prefix)
		if !ok {
			l.NoPolicy = "a policy has no key for " + part
			return
		}
		p.Keys = append(p.Keys, key)
	}
	if slices.ContainsFunc(o.Keys, func(part string) bool { return part != "ip" }) {
		p.OnMissing = "shared" // as in a replay
	}
	perSecond, exact := l.rate.perSecond()
	switch {
	case !exact:
		l.NoPolicy = "a policy cannot have the rate exactly"
		return
	case o.Cost.constant == 0:
		l.NoPolicy = "a policy would settle the cost after the response"
		return
	}
	p.Config = algorithmConfig{TokensPerSecond: perSecond, Burst: l.Burst}
	if o.Cost.constant != 1 {
		p.Config.FixedCost = o.Cost.constant
	}
	if _, err := cli.ParsePolicy([]byte(p.text())); err != nil {
		l.NoPolicy = cli.Problems(err)[0]
		return
	}
	l.Policy = p
}

// perSecond returns the rate in tokens a second, and whether tb.LimitPerSecond makes the same rate
// of it.
func (r Rate) perSecond() (perSecond float64, exact bool) {
	rate := big.NewRat(r.Tokens, int64(r.Per))
	perSecond, _ = new(big.Rat).Mul(rate, big.NewRat(int64(time.Second), 1)).Float64()
	l, err := tb.LimitPerSecond(1, perSecond)
	return perSecond, err == nil && big.NewRat(l.Tokens, int64(l.Per)).Cmp(rate) == 0
}

// approximate returns the rate in tokens a second.
func (r Rate) approximate() float64 {
	perSecond, _ := r.perSecond()
	return perSecond
}

// policyKey returns the key of a policy that is a part of a key here, if there is one.
func policyKey(part string, ipv6Prefix int) (key string, ok bool) {
	caddy, isCaddy := strings.CutPrefix(part, "request.headers.")
	nginx, isNginx := strings.CutPrefix(part, "http_")
	switch {
	case part == "ip" && ipv6Prefix == 64:
		return "ip:address", true
	case part == "ip":
		return fmt.Sprintf("ip:address/%d", ipv6Prefix), true
	case part == "host":
		return "header:Host", true
	case isCaddy:
		return "header:" + caddy, true
	case isNginx:
		name := strings.ReplaceAll(nginx, "_", "-")
		return "header:" + textproto.CanonicalMIMEHeaderKey(name), true
	}
	return "", false
}

// text returns the policy as JSON.
func (p *SuggestedPolicy) text() string {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(err) // a policy has no value that JSON has not
	}
	return string(text)
}

// suggestedFlags returns the flags, besides the limit, with which a replay and a proxy find the
// same keys and costs. Flags with their default are left out.
func suggestedFlags(o *Options, s accesslog.Schema) (replay, proxy string) {
	var b strings.Builder
	add := func(flag, value, byDefault string) {
		if value != byDefault {
			b.WriteString(" --" + flag + " " + shellWord(value))
		}
	}
	var trusted []string
	for _, network := range o.Trusted {
		trusted = append(trusted, network.String())
	}
	add("trusted-proxies", strings.Join(trusted, ","), "")
	proxy = b.String()
	add("key", strings.Join(o.Keys, ","), "ip")
	add("ipv6-prefix", strconv.Itoa(o.IPv6Prefix), "64")
	add("cost", o.Cost.String(), "1")
	for _, name := range slices.Sorted(maps.Keys(s.Names)) {
		add("field", name+"="+s.Names[name], "")
	}
	add("format", s.LogFormat, "")
	return b.String(), proxy
}

// shellWord returns a text as a shell reads it: quoted, unless all of it is plain.
func shellWord(text string) string {
	const plain = "-_./:,=@+%"
	special := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(plain, r)
	}
	if !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
