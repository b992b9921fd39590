package replay

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// proxied returns a log of requests from peers, in turn, with X-Forwarded-For.
func proxied(lines int, peers []string, forwarded func(i int) string) Input {
	var log strings.Builder
	for i := range lines {
		fmt.Fprintf(&log, "%s \"-\" \"curl\" \"%s\"\n",
			strings.TrimSuffix(line(peers[i%len(peers)], i, 1), "\n"), forwarded(i))
	}
	return input("a.log", log.String())
}

// Behind a proxy all requests seem to come from one client. The report says so, and the flag that
// it prints is the one to use.
func TestRequestsBehindAProxy(t *testing.T) {
	oneHop := func(i int) string { return fmt.Sprintf("198.51.100.%d", i%50) }
	var many []string
	for i := range 9 {
		many = append(many, fmt.Sprintf("10.0.%d.1", i))
	}
	for _, tt := range []struct {
		name      string
		peers     []string
		forwarded func(i int) string
		flag      string // empty for no hint
		behind    int
	}{
		{"one proxy", []string{"172.18.0.1"}, oneHop, "172.18.0.1", 50},
		{"two in a row", []string{"127.0.0.1"},
			func(i int) string { return "6.6.6.6, " + oneHop(i) + ", 10.0.0.2" }, "127.0.0.1,10.0.0.2", 50},
		{"two side by side", []string{"10.0.0.2", "10.0.0.3"}, oneHop, "10.0.0.2,10.0.0.3", 50},
		{"many", many, oneHop, "10.0.0.0/8", 50},
		{"no header", []string{"172.18.0.1"}, func(int) string { return "-" }, "log X-Forwarded-For", 0},
		{"clients of an intranet", many, func(int) string { return "-" }, "", 0},
		{"few requests", []string{"172.18.0.1", "192.0.2.1", "192.0.2.2"}, oneHop, "", 0},
		{"no proxy", []string{"192.0.2.1"}, oneHop, "", 0},
	} {
		in := proxied(300, tt.peers, tt.forwarded)
		policy, err := policyOptions(t, `{"name": "a", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}`)
		if err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]Options{
			"limit": options(t, "1", 1), "suggestion": suggestOptions(t, "1%", ""), "policy": policy,
		} {
			if name == "policy" && tt.behind == 0 {
				continue // it does not count each address
			}
			rep := replay(t, o, in).Report
			text := rendered(t, &rep)
			want := "\n  --trusted-proxies " + tt.flag + "\n"
			if tt.behind == 0 {
				want = tt.flag
			}
			if !strings.Contains(text, want) || rep.Clients.Behind != tt.behind ||
				tt.flag == "" && strings.Contains(text, "proxy.\n") {
				t.Errorf("%s, %s: %+v, no %q in\n%s", tt.name, name, rep.Clients, want, text)
			}
		}
		if tt.behind == 0 {
			continue
		}
		o := options(t, "1", 1)
		for network := range strings.SplitSeq(tt.flag, ",") {
			if p, err := netip.ParsePrefix(network); err == nil {
				o.Trusted = append(o.Trusted, p)
			} else {
				a := netip.MustParseAddr(network)
				o.Trusted = append(o.Trusted, netip.PrefixFrom(a, a.BitLen()))
			}
		}
		if rep := replay(t, o, in).Report; rep.Keys != 50 || rep.Clients.Private != 0 ||
			len(rep.Clients.Proxies) > 0 {
			t.Errorf("%s: with the flag %d keys, %+v", tt.name, rep.Keys, rep.Clients)
		}
	}
}

// A proxy before a trusted one is found, and the flag still has the trusted one.
func TestAProxyBehindATrustedOne(t *testing.T) {
	o := options(t, "1", 1)
	o.Trusted = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}
	rep := replay(t, o, proxied(10, []string{"172.18.0.1"},
		func(int) string { return "198.51.100.7, 10.0.0.2" })).Report
	const want = "\n  --trusted-proxies 172.16.0.0/12,10.0.0.2\n"
	if text := rendered(t, &rep); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

func TestClientsThatAreNotAddressesAreReported(t *testing.T) {
	log := line("192.0.2.1", 1, 1) + line("www.example", 1, 1) + line("2001:db8::1", 1, 1) +
		line("b.example", 1, 1) + line("b.example", 1, 1)
	for keys, want := range map[string]uint64{"ip": 3, "user,ip": 3, "path": 0} {
		for name, o := range map[string]Options{
			"limit": options(t, "1", 1), "suggestion": suggestOptions(t, "1%", "1"),
		} {
			o.Keys = strings.Split(keys, ",")
			rep := replay(t, o, input("a.log", log)).Report
			const note = "3 of 5 requests have a client that is not an address, such as b.example.\n"
			if text := rendered(t, &rep); rep.Clients.NoAddress != want ||
				strings.Contains(text, note) != (want > 0) {
				t.Errorf("%s by %s: %+v, want %d, in\n%s", name, keys, rep.Clients, want, text)
			}
		}
	}
}
