package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

func (p *PathLimit) isPrefix() bool { return len(p.Path) > 1 && strings.HasSuffix(p.Path, "/") }

// nginxRate returns a rate as limit_req has it, in whole requests a second or a minute, or nothing
// if it has none that is the same. It counts in thousandths of a request a second.
func nginxRate(r Rate) string {
	in := func(d time.Duration) *big.Rat {
		return new(big.Rat).Mul(big.NewRat(r.Tokens, int64(r.Per)), big.NewRat(int64(d), 1))
	}
	switch second, minute := in(time.Second), in(time.Minute); {
	case !in(1000 * time.Second).IsInt():
	case second.IsInt():
		return second.Num().String() + "r/s"
	case minute.IsInt():
		return minute.Num().String() + "r/m"
	}
	return ""
}

// nginxConfig returns the limits as a configuration of nginx, which it loads inside http, or an
// error that says what nginx cannot express. A zone has room for twice as many clients as the log
// has: a megabyte has 8,000 states of 128 bytes. With nodelay, limit_req grants a request more at
// once than its burst.
func nginxConfig(plan []PathLimit, o *Options, clients uint64) (text string, err error) {
	switch {
	case !slices.Equal(o.Keys, []string{"ip"}):
		return "", errors.New("it needs --key ip")
	case o.IPv6Prefix%8 != 0:
		return "", errors.New("it needs whole bytes in --ipv6-prefix, such as 48, 56 or 64")
	}
	var zones, limits strings.Builder
	for _, network := range cli.Prefixes(o.Trusted) {
		fmt.Fprintf(&zones, "set_real_ip_from %s;\n", network)
	}
	if len(o.Trusted) > 0 {
		zones.WriteString("real_ip_header X-Forwarded-For;\nreal_ip_recursive on;\n")
	}
	n := o.IPv6Prefix / 8
	fmt.Fprintf(&zones, "map $binary_remote_addr $client { # IPv6 by /%d\n"+
		"    \"~(?s)^(?<prefix>.{%d}).{%d}$\" $prefix;\n    default $binary_remote_addr;\n}\n",
		o.IPv6Prefix, n, 16-n)
	for _, p := range plan {
		rate := nginxRate(p.Limit.Rate)
		if rate == "" {
			return "", fmt.Errorf("it needs whole requests a second or a minute, and not %s", p.Limit.Rate)
		}
		key := "$client"
		if p.Path != "" {
			key += "_" + strings.ReplaceAll(p.name, "-", "_")
			end := "$"
			if p.isPrefix() {
				end = ""
			}
			fmt.Fprintf(&zones, "map $uri %s { # a request without a value is not counted\n"+
				"    \"~^%s%s\" $client;\n    default \"\";\n}\n", key, regexp.QuoteMeta(p.Path), end)
		}
		fmt.Fprintf(&zones, "limit_req_zone %s zone=%s:%dm rate=%s;\n", key, p.name,
			1+clients/4000, rate)
		fmt.Fprintf(&limits, "limit_req zone=%s", p.name)
		if p.Limit.Burst > 1 {
			fmt.Fprintf(&limits, " burst=%d", p.Limit.Burst-1)
		}
		limits.WriteString(" nodelay;\n")
	}
	return "# For http { }. A server or a location with a limit_req of its own needs these, too.\n" +
		zones.String() + limits.String() + "limit_req_status 429;", nil
}

// printExport prints what --export asks for. The error says why there is nothing to print.
func (rep *Report) printExport(stdout io.Writer) error {
	o := rep.options
	text, err := "", errors.New("no limit is suggested")
	switch {
	case rep.Limit == nil:
	case *o.Export == "policy":
		text, err = policyOf(rep.Suggestion.plan(rep.Limit), o)
	default:
		text, err = nginxConfig(rep.Suggestion.plan(rep.Limit), o, rep.Keys)
	}
	if err != nil {
		return fmt.Errorf("%w, so there is nothing for --export %s", err, *o.Export)
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}

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

// flags returns the flags, besides the limit, with which a replay and a proxy find the same keys.
// Flags with their default are left out.
func (o *Options) flags() (replay, proxy string) {
	var b strings.Builder
	add := func(flag, value, byDefault string) {
		if value != byDefault {
			b.WriteString(" --" + flag + " " + shellWord(value))
		}
	}
	add("trusted-proxies", listOf(cli.Prefixes(o.Trusted)), "")
	proxy = b.String()
	add("key", strings.Join(o.Keys, ","), "ip")
	add("ipv6-prefix", strconv.Itoa(o.IPv6Prefix), "64")
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
	if share := o.Suggest.String(); flags != "" || share != "1%" {
		flags += " --suggest " + share
	}
	if o.ByPath {
		flags += " --by-path"
	}
	return flags
}

func listOf(networks []netip.Prefix) string {
	var all []string
	for _, network := range networks {
		all = append(all, network.String())
	}
	return strings.Join(all, ",")
}

var plainWord = regexp.MustCompile(`^[-_./:,=@+%0-9A-Za-z]*$`)

// shellWord returns a text as a shell reads it: quoted, unless all of it is plain.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
