package replay

import (
	"net/netip"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
)

func TestSuggestedFlags(t *testing.T) {
	o := suggestOptions(t, "1%", "1")
	if replay, proxy := suggestedFlags(&o, accesslog.Schema{}); replay != "" || proxy != "" {
		t.Errorf("%q and %q by default", replay, proxy)
	}
	o.Keys, o.IPv6Prefix, o.Cost = []string{"ip", "it's"}, 48, mustCost(t, "bytes/KiB")
	o.Trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	replay, proxy := suggestedFlags(&o, accesslog.Schema{
		LogFormat: `$remote_addr [$time_local] "$request"`,
		Names:     map[string]string{"uri": "my;uri", "ip": "client.ip"},
	})
	const trusted = ` --trusted-proxies 10.0.0.0/8,::1/128`
	const want = trusted + ` --key 'ip,it'\''s' --ipv6-prefix 48 --cost bytes/KiB` +
		` --field ip=client.ip --field 'uri=my;uri' --format '$remote_addr [$time_local] "$request"'`
	if replay != want || proxy != trusted {
		t.Errorf("got %s\nand %s\nwant %s\nand %s", replay, proxy, want, trusted)
	}
}
