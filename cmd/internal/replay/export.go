package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// isPrefix reports whether the path stands for all paths below it.
func (p *PathLimit) isPrefix() bool { return len(p.Path) > 1 && strings.HasSuffix(p.Path, "/") }

// notName matches what a name has no place for.
var notName = regexp.MustCompile(`[/._~-]`)

// nameOf returns a name for a path.
func nameOf(path string) string {
	return cmp.Or(strings.Trim(notName.ReplaceAllString(path, "-"), "-"), "root")
}

// nginxLimit returns the rate of limit_req that is not below a limit: whole requests a second or a
// minute. With nodelay, limit_req grants a request more at once than its burst.
func nginxLimit(l *Limit) string {
	perSecond := l.Rate.perSecond()
	perMinute := math.Ceil(60 * perSecond)
	if perSecond != math.Trunc(perSecond) && perMinute <= 1000 {
		return fmt.Sprint(perMinute, "r/m")
	}
	return fmt.Sprint(math.Ceil(perSecond), "r/s")
}

// nginxConfig returns the limits as a configuration of nginx, which it loads inside http, for a
// number of clients. The IPv6 prefix is in whole bytes.
func nginxConfig(plan []PathLimit, o *Options, clients uint64) string {
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
			zoneMegabytes(clients), nginxLimit(p.Limit))
		fmt.Fprintf(&limits, "limit_req zone=%s", p.name)
		if p.Limit.Burst > 1 {
			fmt.Fprintf(&limits, " burst=%d", p.Limit.Burst-1)
		}
		limits.WriteString(" nodelay;\n")
	}
	return "# For http { }. A server or a location with a limit_req of its own needs these, too.\n" +
		zones.String() + limits.String() + "limit_req_status 429;"
}

// zoneMegabytes returns the size of a zone for twice as many clients as the log has. A megabyte has
// room for 8,000 states of 128 bytes.
func zoneMegabytes(clients uint64) uint64 { return 1 + clients/4000 }

// printExport prints what --export asks for. The error says why there is nothing to print.
func (rep *Report) printExport(stdout io.Writer) error {
	o := rep.options
	var why, text string
	switch {
	case rep.Limit == nil:
		why = "no limit is suggested"
	case *o.Export == "policy":
		var err error
		if text, err = policyOf(rep.Suggestion.plan(rep.Limit), o); err != nil {
			why = err.Error()
		}
	case !slices.Equal(o.Keys, []string{"ip"}) || o.Cost.constant != 1:
		why = "it needs --key ip and --cost 1"
	case o.IPv6Prefix%8 != 0:
		why = "it needs whole bytes in --ipv6-prefix, such as 48, 56 or 64"
	default:
		text = nginxConfig(rep.Suggestion.plan(rep.Limit), o, rep.Keys)
	}
	if why != "" {
		return fmt.Errorf("%s, so there is nothing for --export %s", why, *o.Export)
	}
	_, err := fmt.Fprintln(stdout, text)
	return err
}
