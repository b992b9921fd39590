package policycmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/beforerules"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Explain is `tb policy explain`.
type Explain struct {
	File    string        `arg:"" help:"${policy_file}"`
	Request string        `default:"GET /" placeholder:"'METHOD TARGET'" help:"${policy_request}"`
	Header  []string      `short:"H" sep:"none" placeholder:"'NAME: VALUE'" help:"${policy_header}"`
	From    netip.Addr    `default:"127.0.0.1" help:"${policy_from}"`
	Trusted []cli.Network `name:"trusted-proxies" placeholder:"CIDR" help:"${policy_trusted}"`
}

// Validate returns an error if the flags do not describe a request.
func (c *Explain) Validate() error {
	_, err := c.request()
	return err
}

// Run prints the rules that apply to the request, and the names of the other rules.
func (c *Explain) Run(ctx context.Context, std cli.IO) error {
	data, err := read(ctx, c.File, std.Stdin)
	if err != nil {
		return err
	}
	policy, err := cli.ParsePolicyFile(c.File, data)
	if err != nil {
		return err
	}
	limiter, err := httplimit.New(policy, httplimit.WithoutClaims(),
		httplimit.WithClientAddress(httplimit.ClientAddress{Trusted: cli.Prefixes(c.Trusted)}))
	if err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	trusted := limiter.TrustsPeer(r)
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool {
		return beforerules.Drops(name, trusted)
	})
	from := "unknown" // as in a key
	if a := limiter.ClientAddress(r); a.IsValid() {
		from = a.String()
	}
	fmt.Fprintf(std.Stdout, "%s %s from %s\n\n", r.Method, r.URL.RequestURI(), from)
	if status, why := beforerules.Status(r); status != 0 {
		fmt.Fprintf(std.Stdout, "tb-proxy refuses the request with %d: %s.\n", status, why)
		return nil
	}
	write(std.Stdout, limiter.Explain(r), limiter.Stats())
	return nil
}

// request returns the request that the flags describe, as a server would read it.
func (c *Explain) request() (*http.Request, error) {
	method, target, ok := strings.Cut(c.Request, " ")
	if !ok || method == "" || strings.Contains(target, " ") ||
		!strings.HasPrefix(target, "/") && !strings.Contains(target, "://") {
		return nil, fmt.Errorf("--request=%q: want a method and a path, such as 'GET /x?y=1'",
			c.Request)
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, fmt.Errorf("--request=%q: %w", c.Request, err)
	}
	r := &http.Request{
		Method: method, URL: u, Host: u.Host, Header: http.Header{}, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		RemoteAddr: net.JoinHostPort(c.From.String(), "1024"),
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("--header=%q: want a name and a value, such as 'X-Api-Key: k1'", h)
		}
		r.Header.Add(name, strings.TrimSpace(value))
	}
	// A server moves Host from the header to Request.Host, unless the target has a host (RFC 9112).
	r.Host = cmp.Or(r.Host, r.Header.Get("Host"))
	r.Header.Del("Host")
	return r, nil
}

func write(w io.Writer, applies []httplimit.Explanation, all []httplimit.RuleStats) {
	if len(applies) == 0 {
		fmt.Fprintln(w, "No rule applies: the request passes, without rate limit fields.")
	} else {
		table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(table, "RULE\tMODE\tKEY\tCOST\tBURST\tRATE\tDECISION OF A FULL BUCKET")
		for _, e := range applies {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", name(e), mode(e.Shadow),
				httplimit.FormatKey(e.Key), cost(e), e.Limit.Capacity, pace(e), decision(e))
		}
		table.Flush()
	}
	if rest := others(applies, all); len(rest) > 0 {
		fmt.Fprintf(w, "\nThese rules do not apply: %s\n", strings.Join(rest, ", "))
	}
}

func cost(e httplimit.Explanation) string {
	if e.Estimate {
		return fmt.Sprintf("%g, then the response's", e.Cost)
	}
	return fmt.Sprintf("%g", e.Cost)
}

// name returns the name of the rule, and of the request's tier and class.
func name(e httplimit.Explanation) string {
	text := e.Rule
	if e.Tier != "" {
		text += fmt.Sprintf(", tier %q", e.Tier)
	}
	if e.Class != "" {
		text += fmt.Sprintf(", class %q", e.Class)
	}
	return text
}

func mode(shadow bool) string {
	if shadow {
		return "shadow"
	}
	return "enforce"
}

func decision(e httplimit.Explanation) string {
	switch {
	case e.MissingKey != "":
		return "refused: lacks " + e.MissingKey + " (400)"
	case e.AmbiguousKey == "path":
		return "refused: the path has two meanings (400)"
	case e.AmbiguousKey != "":
		return "refused: has " + e.AmbiguousKey + " more than once (400)"
	case e.Allowed && e.MaxDelay > 0:
		return fmt.Sprintf("granted, %d left; an empty one delays by up to %v", e.Remaining, e.MaxDelay)
	case e.Allowed && e.Block > 0:
		return fmt.Sprintf("granted, %d left; an empty one blocks for %v", e.Remaining, e.Block)
	case e.Allowed:
		return fmt.Sprintf("granted, %d left", e.Remaining)
	case e.Class != "":
		return "refused: costs more than the class may take"
	}
	return "refused: costs more than the burst"
}

// pace returns the rate of the rule, with its range if it adapts.
func pace(e httplimit.Explanation) string {
	if e.Adaptive == (httplimit.Adaptive{}) {
		return rate(e.Limit)
	}
	return fmt.Sprintf("%s, adapts from %g/s to %g/s", rate(e.Limit), e.Adaptive.Min, e.Adaptive.Max)
}

// rate formats the rate of a limit as a fraction.
func rate(l tb.Limit) string {
	if l.Per == time.Second {
		return fmt.Sprintf("%d/s", l.Tokens)
	}
	return fmt.Sprintf("%d/%s", l.Tokens, l.Per)
}

// others returns the names of the rules that do not apply, as clients see them.
func others(applies []httplimit.Explanation, all []httplimit.RuleStats) (rest []string) {
	seen := map[string]bool{}
	for _, e := range applies {
		seen[e.Rule] = true
	}
	for _, s := range all {
		if !seen[s.Label] {
			rest = append(rest, s.Label)
		}
	}
	return rest
}
