package replay

import (
	"fmt"
	"strings"
	"testing"
)

// Behind a proxy all requests seem to come from few clients. The first line says so, and the flag
// that it prints is the one to use.
func TestRequestsBehindAProxy(t *testing.T) {
	var many, cloud []string
	for i := range maxProxies + 1 {
		many = append(many, fmt.Sprintf("10.0.%d.1", i))
		cloud = append(cloud, fmt.Sprintf("203.0.113.%d", i))
	}
	for _, tt := range []struct {
		name      string
		peers     []string
		forwarded bool
		agents    int
		flag      string // empty for no hint
		likely    bool
	}{
		{"one proxy", []string{"172.18.0.1"}, true, 1, "172.18.0.1/32", true},
		{"no X-Forwarded-For", []string{"172.18.0.1"}, false, 1, "172.18.0.1/32", true},
		{"IPv6", []string{"fd00::1"}, true, 1, "fd00::/64", true},
		{"loopback", []string{"::1"}, true, 1, "::1/128", true},
		{"two side by side", []string{"10.0.0.2", "10.0.0.3"}, true, 1, "10.0.0.2/32,10.0.0.3/32", true},
		{"clients of an intranet", many, false, 1, "", false},
		{"CDN", cloud[:2], true, 1, "203.0.113.0/32,203.0.113.1/32", true},
		{"CDN without X-Forwarded-For", cloud[:1], false, manyAgents, "203.0.113.0/32", true},
		{"one client", cloud[:1], false, manyAgents - 1, "203.0.113.0/32", false},
		{"large CDN", cloud, true, 1, "203.0.113.7/32", true},
		{"clients", cloud, false, 1, "", false},
		{"a few private", []string{"172.18.0.1", "192.0.2.1", "192.0.2.2"}, false, 1, "", false},
	} {
		log := agentLine("192.0.2.1", "/", "x", 0)
		for i := range 300 {
			forwarded := ` "0.` + fmt.Sprint(i) + `"` // another field
			if tt.forwarded {
				forwarded = fmt.Sprintf(` "198.51.100.%d"`, i%50)
			}
			line := agentLine(tt.peers[i%len(tt.peers)], "/", fmt.Sprint("curl", i%tt.agents), 13*i)
			log += strings.TrimSuffix(line, "\n") + forwarded + "\n"
		}
		in := input("a.log", log)
		for name, o := range map[string]Options{
			"limit": options(t, "1", 1), "suggestion": suggestOptions(t, "1%", ""),
		} {
			o.Trusted = networks(t, "192.0.2.128/25")
			rep := replay(t, o, in)
			if tt.flag == "" {
				if len(rep.Clients.Proxies) > 0 || len(rep.Doubts) > 0 {
					t.Errorf("%s, %s: %+v, doubts %q", tt.name, name, rep.Clients, rep.Doubts)
				}
				continue
			}
			text, report := rep.Clients.doubt(rep), rendered(t, rep)
			if !strings.Contains(text, " --trusted-proxies 192.0.2.128/25,") ||
				!strings.Contains(text, ","+tt.flag) || !strings.Contains(report, text+"\n") ||
				strings.HasPrefix(report, "CAUTION: "+text) != tt.likely ||
				tt.forwarded != strings.Contains(text, "at least 50 clients. Believe it by ") {
				t.Errorf("%s, %s: %+v, %q in\n%s", tt.name, name, rep.Clients, text, report)
			}
			if !tt.likely || !tt.forwarded || len(tt.peers) > maxProxies {
				continue
			}
			o.Trusted = append(o.Trusted, networks(t, strings.Split(tt.flag, ",")...)...)
			if rep := replay(t, o, in); rep.Keys != 51 || len(rep.Doubts) > 0 {
				t.Errorf("%s: with the flag %d keys, %q", tt.name, rep.Keys, rep.Doubts)
			}
		}
	}
}
