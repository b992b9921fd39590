package proxy

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Networks are separated by commas, or each has its own flag.
func TestTrustedProxiesAndUpstreamFlags(t *testing.T) {
	var flags struct {
		Proxy Command `cmd:""`
	}
	parser, err := kong.New(&flags, Vars)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"proxy", "--trusted-proxies=10.0.0.1/8, ::ffff:192.0.2.1",
		"--trusted-proxies", "fe80::1%eth0", "--upstream=https://h:8/x?y=z"}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(flags.Proxy.Trusted); got !=
		"[10.0.0.1/8 ::ffff:192.0.2.1/128 fe80::1/128]" {
		t.Error(got)
	}
	if got := flags.Proxy.Upstream.String(); got != "https://h:8/x?y=z" {
		t.Error(got)
	}
}

// Each flag in docs/proxy.md exists, with the default that the table has.
func TestDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&Command{}, Vars)
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, f := range parser.Model.Flags {
		defaults[f.Name] = f.Default
	}
	rows := regexp.MustCompile("(?m)^\\| `--(.*?)` \\| (.*?) \\|").FindAllSubmatch(doc, -1)
	for _, row := range rows {
		name, documented := string(row[1]), string(row[2])
		value, ok := defaults[name]
		if documented = strings.Trim(documented, "`"); !ok || value != "" && value != documented {
			t.Errorf("--%s: %q, want %q", name, documented, value)
		}
	}
	if len(rows) < 10 {
		t.Errorf("%d rows", len(rows))
	}
}
