package replay

import (
	"encoding/json"
	"errors"
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

// policyOf returns the limits as a policy that tb-proxy accepts, or an error that says why there is
// none. Several limits are several sets: see docs/policy.md.
func policyOf(plan []PathLimit, o *Options) (text string, err error) {
	rule := policy.Rule{}
	for _, part := range o.Keys {
		key, ok := policyKey(part, o.IPv6Prefix)
		if !ok {
			return "", fmt.Errorf("a policy has no key for %s", part)
		}
		rule.Keys = append(rule.Keys, key)
	}
	if slices.ContainsFunc(o.Keys, func(part string) bool { return part != "ip" }) {
		rule.OnMissing = policy.Shared // as in a replay
	}
	if o.Cost.constant == 0 {
		return "", errors.New("a policy would settle the cost after the response")
	}
	if o.Cost.constant != 1 {
		rule.Cost.Fixed = o.Cost.constant
	}
	var all policy.Policy
	for _, p := range plan {
		rule.Name, rule.Limit = p.name, p.Limit.Rate.limit(int(p.Limit.Burst))
		set := policy.RuleSet{Rules: []policy.Rule{rule}}
		if len(plan) > 1 {
			set.Name = p.name
		}
		if p.isPrefix() {
			set.Selector.PathPrefix = p.Path
		} else {
			set.Selector.PathExact = p.Path
		}
		all.Sets = append(all.Sets, set)
	}
	data, err := json.MarshalIndent(&all, "", "  ")
	if err != nil {
		return "", err
	}
	if _, err := cli.ParsePolicy(data); err != nil {
		return "", errors.New(cli.Problems(err)[0])
	}
	return string(data), nil
}

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
	add("trusted-proxies", listOf(cli.Prefixes(o.Trusted), ","), "")
	proxy = b.String()
	add("key", strings.Join(o.Keys, ","), "ip")
	add("ipv6-prefix", strconv.Itoa(o.IPv6Prefix), "64")
	add("cost", o.Cost.String(), "1")
	for _, name := range slices.Sorted(maps.Keys(o.Field)) {
		add("field", name+"="+o.Field[name], "")
	}
	add("format", o.Format, "")
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
