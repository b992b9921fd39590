package replay

import (
	"fmt"
	"strings"
	"testing"
)

// Behind a proxy all requests seem to come from few clients. The report says so, and the flag that
// it prints is the one to use.
func TestRequestsBehindAProxy(t *testing.T) {
	var many []string
	for i := range maxProxies + 1 {
		many = append(many, fmt.Sprintf("10.0.%d.1", i))
	}
	for _, tt := range []struct {
		name  string
		peers []string
		flag  string // empty for no hint
	}{
		{"one proxy", []string{"172.18.0.1"}, "172.18.0.1/32"},
		{"IPv6", []string{"fd00::1"}, "fd00::/64"},
		{"two side by side", []string{"10.0.0.2", "10.0.0.3"}, "10.0.0.2/32,10.0.0.3/32"},
		{"clients of an intranet", many, ""},
		{"few requests", []string{"172.18.0.1", "192.0.2.1", "192.0.2.2"}, ""},
		{"no proxy", []string{"192.0.2.1"}, ""},
	} {
		var log strings.Builder
		for i := range 300 {
			fmt.Fprintf(&log, "%s \"-\" \"curl\" \"198.51.100.%d\"\n",
				strings.TrimSuffix(line(tt.peers[i%len(tt.peers)], i, 1), "\n"), i%50)
		}
		in := input("a.log", log.String())
		for name, o := range map[string]Options{
			"limit": options(t, "1", 1), "suggestion": suggestOptions(t, "1%", ""),
		} {
			o.Trusted = networks(t, "192.0.2.128/25")
			rep := replay(t, o, in).Report
			text := rendered(t, &rep)
			if hint := "believe it by --trusted-proxies 192.0.2.128/25," + tt.flag + "\n"; tt.flag != "" !=
				strings.Contains(text, hint) || tt.flag == "" && strings.Contains(text, "may be a proxy") {
				t.Errorf("%s, %s: %+v, no %q in\n%s", tt.name, name, rep.Clients, hint, text)
			}
			if tt.flag == "" {
				continue
			}
			o.Trusted = append(o.Trusted, networks(t, strings.Split(tt.flag, ",")...)...)
			if rep := replay(t, o, in).Report; rep.Keys != 50 || rep.Clients.Private > 0 {
				t.Errorf("%s: with the flag %d keys, %+v", tt.name, rep.Keys, rep.Clients)
			}
		}
	}
}
