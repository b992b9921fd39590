package proxy

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// Networks are separated by commas, or each has its own flag.
func TestTrustedProxiesAndUpstreamFlags(t *testing.T) {
	c := parse(t, "--trusted-proxies=10.0.0.1/8, ::ffff:192.0.2.1",
		"--trusted-proxies", "fe80::1%eth0", "--upstream=https://h:8/x?y=z")
	if got := fmt.Sprint(c.Trusted); got != "[10.0.0.1/8 ::ffff:192.0.2.1/128 fe80::1/128]" {
		t.Error(got)
	}
	if got := c.Upstream.String(); got != "https://h:8/x?y=z" {
		t.Error(got)
	}
}

// Each flag is in docs/proxy.md with its default, and in a group of the help.
func TestDocumentation(t *testing.T) {
	doc, _ := os.ReadFile("../../../docs/proxy.md")
	parser, err := kong.New(&Command{}, Vars)
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, f := range parser.Model.Flags {
		if defaults[f.Name] = f.Default; f.Group == nil && f.Name != "help" {
			t.Errorf("--%s is in no group", f.Name)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `--(.*?)` \\| (.*?) \\|").FindAllSubmatch(doc, -1)
	for _, row := range rows {
		name, documented := string(row[1]), string(row[2])
		value, ok := defaults[name]
		if documented = strings.Trim(documented, "`"); !ok || value != "" && value != documented {
			t.Errorf("--%s: %q, want %q", name, documented, value)
		}
		delete(defaults, name)
	}
	delete(defaults, "help")
	if len(defaults) > 0 {
		t.Errorf("docs/proxy.md has no row for %v", defaults)
	}
}

// IPv4 and IPv6 addresses share buckets by the prefixes of the flags, and trusted proxies name
// their client in the field of the flag.
func TestClientAddressFlags(t *testing.T) {
	name := file(t, two)
	for _, tt := range []struct {
		change   func(*Command)
		from, to string
		shared   bool
	}{
		{func(*Command) {}, "192.0.2.1", "192.0.2.2", false},
		{func(c *Command) { c.IPv4Prefix = 24 }, "192.0.2.1", "192.0.2.2", true},
		{func(*Command) {}, "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{func(c *Command) { c.IPv6Prefix = 48 }, "2001:db8:1:2::1", "2001:db8:1:3::1", true},
	} {
		for _, header := range []string{"X-Forwarded-For", "X-Real-Ip"} {
			r := run(t, func(c *Command) {
				c.Policy, c.ClientAddressHeader = name, header
				c.Trusted = []cli.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
				tt.change(c)
			})
			get(t, r.proxy, header, tt.from)
			resp, _ := get(t, r.proxy, header, tt.to)
			if got := resp.Header.Get("RateLimit-Remaining") == "0"; got != tt.shared {
				t.Errorf("%s: %s and %s share a bucket: %v", header, tt.from, tt.to, got)
			}
		}
	}
}
