package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// addPolicy adds the limit as a policy that tb-proxy accepts, or the reason why there is none.
func (l *Limit) addPolicy(o *Options) {
	rule := policy.Rule{Name: "suggested", Limit: l.rate.limit(int(l.Burst))}
	for _, part := range o.Keys {
		key, ok := policyKey(part, o.IPv6Prefix)
		if !ok {
			l.NoPolicy = "a policy has no key for " + part
			return
		}
		rule.Keys = append(rule.Keys, key)
	}
	if slices.ContainsFunc(o.Keys, func(part string) bool { return part != "ip" }) {
		rule.OnMissing = policy.Shared // as in a replay
	}
	if o.Cost.constant == 0 {
		l.NoPolicy = "a policy would settle the cost after the response"
		return
	}
	if o.Cost.constant != 1 {
		rule.Cost.Fixed = o.Cost.constant
	}
	p := policy.Rules(rule)
	if _, err := cli.ParsePolicy([]byte(policyText(p))); err != nil {
		l.NoPolicy = cli.Problems(err)[0]
		return
	}
	l.Policy = p
}

// policyText returns a policy as JSON.
func policyText(p *policy.Policy) string {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(err) // a suggestion has no number that JSON has not
	}
	return string(text)
}

// perSecond returns the rate in tokens a second, nearly.
func (r Rate) perSecond() float64 { return float64(r.Tokens) / r.Per.Seconds() }

// policyKey returns the key of a policy that is a part of a key here, if there is one.
func policyKey(part string, ipv6Prefix int) (key string, ok bool) {
	header, ok := strings.CutPrefix(part, "request.headers.") // of Caddy
	if variable, is := strings.CutPrefix(part, "http_"); is { // of nginx
		header, ok = http.CanonicalHeaderKey(strings.ReplaceAll(variable, "_", "-")), true
	}
	switch {
	case part == "ip" && ipv6Prefix == 64:
		return "ip:address", true
	case part == "ip":
		return fmt.Sprintf("ip:address/%d", ipv6Prefix), true
	case part == "host":
		return "header:Host", true
	case ok:
		return "header:" + header, true
	}
	return "", false
}

// flags returns the flags, besides the limit, with which a replay and a proxy find the same keys
// and costs. Flags with their default are left out.
func (o *Options) flags() (replay, proxy string) {
	var b strings.Builder
	add := func(flag, value, byDefault string) {
		if value != byDefault {
			b.WriteString(" --" + flag + " " + shellWord(value))
		}
	}
	add("trusted-proxies", listOf(o.Trusted, ","), "")
	proxy = b.String()
	add("key", strings.Join(o.Keys, ","), "ip")
	add("ipv6-prefix", strconv.Itoa(o.IPv6Prefix), "64")
	add("cost", o.Cost.String(), "1")
	for _, name := range slices.Sorted(maps.Keys(o.Schema.Names)) {
		add("field", name+"="+o.Schema.Names[name], "")
	}
	add("format", o.Schema.LogFormat, "")
	return b.String(), proxy
}

// ask returns the flags that ask for the same suggestion, with the ones of flags.
func (o *Options) ask() (flags string) {
	if len(o.Rates) == 1 {
		flags = " --rate " + o.Rates[0].String()
	}
	if share := strings.ReplaceAll(o.Suggest.String(), " ", ""); flags != "" || share != "1%" {
		flags += " --suggest " + share
	}
	if o.ByPath {
		flags += " --by-path"
	}
	return flags
}

// listOf writes networks with a separator between them.
func listOf(networks []netip.Prefix, separator string) string {
	var all []string
	for _, network := range networks {
		all = append(all, network.String())
	}
	return strings.Join(all, separator)
}

// plainWord matches a text that a shell reads as it is.
var plainWord = regexp.MustCompile(`^[-_./:,=@+%0-9A-Za-z]*$`)

// shellWord returns a text as a shell reads it: quoted, unless all of it is plain.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
