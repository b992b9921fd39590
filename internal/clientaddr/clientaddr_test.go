package clientaddr

import (
	"net/netip"
	"strings"
	"testing"
)

func mustNew(t testing.TB, trusted ...string) Rules {
	t.Helper()
	var networks []netip.Prefix
	for _, p := range trusted {
		networks = append(networks, netip.MustParsePrefix(p))
	}
	r, err := New(networks, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClient(t *testing.T) {
	const peer = "10.0.0.1:4711"
	rules := mustNew(t, "10.0.0.0/8", "2001:db8:ffff::/48", "::ffff:172.16.0.0/108")
	for _, c := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"no header", peer, nil, "10.0.0.1"},
		{"untrusted peer", "203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		{"one hop", peer, []string{"198.51.100.1"}, "198.51.100.1"},
		{"what the client wrote", peer, []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		{"two hops", peer, []string{"1.1.1.1, 198.51.100.1, 10.2.3.4"}, "198.51.100.1"},
		{"lines are in order", peer,
			[]string{"1.1.1.1", "198.51.100.1,10.2.3.4", "10.5.6.7"}, "198.51.100.1"},
		{"all are trusted", peer, []string{"10.9.9.9, 10.2.3.4"}, "10.9.9.9"},
		{"garbage at once", peer, []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		{"garbage after a hop", peer, []string{"198.51.100.1, _hidden, 10.2.3.4"}, "10.2.3.4"},
		{"empty entry", peer, []string{"198.51.100.1, , 10.2.3.4"}, "198.51.100.1"},
		{"empty line", peer, []string{"198.51.100.1", ""}, "198.51.100.1"},
		{"trailing comma", peer, []string{"198.51.100.1,"}, "198.51.100.1"},
		{"commas and blanks", peer, []string{" ,\t,, ", "198.51.100.1,,"}, "198.51.100.1"},
		{"long blank", peer, []string{"198.51.100.1," + strings.Repeat(" ", 200)}, "198.51.100.1"},
		{"nothing but commas", peer, []string{",,,"}, "10.0.0.1"},
		{"unspecified IPv4", peer, []string{"198.51.100.1, 0.0.0.0"}, "10.0.0.1"},
		{"unspecified IPv6", peer, []string{"198.51.100.1, ::"}, "10.0.0.1"},
		{"unspecified, mapped", peer, []string{"198.51.100.1, [::ffff:0.0.0.0]:80"}, "10.0.0.1"},
		{"unspecified peer", "[::]:80", nil, "invalid IP"},
		{"NAT64", peer, []string{"64:ff9b::198.51.100.1"}, "198.51.100.1"},
		{"NAT64 peer", "[64:ff9b::198.51.100.1]:80", nil, "198.51.100.1"},
		{"6to4", peer, []string{"2002:c633:6401:7::1"}, "198.51.100.1"},
		{"6to4 peer", "[2002:c633:6401:ffff::1]:80", nil, "198.51.100.1"},
		{"NAT64 of nothing", peer, []string{"64:ff9b::"}, "64:ff9b::"},
		{"another NAT64 prefix", peer, []string{"64:ff9b:1::198.51.100.1"}, "64:ff9b:1::c633:6401"},
		// A client could write a header that a trusted address in an IPv6 form vouches for.
		{"proxy in 6to4", peer, []string{"198.51.100.1, 2002:a02:304::1"}, "10.2.3.4"},
		{"proxy in NAT64", peer, []string{"198.51.100.1, 64:ff9b::10.2.3.4"}, "10.2.3.4"},
		{"port", peer, []string{"198.51.100.1:8080"}, "198.51.100.1"},
		{"brackets", peer, []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"brackets and port", peer, []string{"[2001:db8::7]:80"}, "2001:db8::7"},
		{"IPv6", peer, []string{"2001:db8::7"}, "2001:db8::7"},
		{"zone", peer, []string{"fe80::1%eth0"}, "fe80::1"},
		{"tabs and spaces", peer, []string{"\t198.51.100.1 \t"}, "198.51.100.1"},
		{"bad ports", peer, []string{"198.51.100.1:x"}, "10.0.0.1"},
		{"long port", peer, []string{"198.51.100.1:123456"}, "10.0.0.1"},
		{"no port", peer, []string{"198.51.100.1:"}, "10.0.0.1"},
		{"after brackets", peer, []string{"[2001:db8::7]x"}, "10.0.0.1"},
		{"open brackets", peer, []string{"[2001:db8::7"}, "10.0.0.1"},
		{"quotes", peer, []string{`"198.51.100.1"`}, "10.0.0.1"},
		{"octal", peer, []string{"198.51.100.010"}, "10.0.0.1"},
		{"very long", peer, []string{strings.Repeat(" ", 200) + "198.51.100.1"}, "10.0.0.1"},
		{"mapped", peer, []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"mapped proxy", peer, []string{"198.51.100.1, ::ffff:10.2.3.4"}, "198.51.100.1"},
		{"mapped peer", "[::ffff:10.0.0.1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"proxy with a zone", "[2001:db8:ffff::1%eth0]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"mapped network", "172.20.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"peer without port", "10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"Unix socket", "@", []string{"198.51.100.1"}, "invalid IP"},
	} {
		if got := rules.Client(c.peer, c.lines).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	all := mustNew(t, "::ffff:0.0.0.0/96") // of IPv4
	if got := all.Client(peer, []string{"2001:db8::1, 192.0.2.1"}); got.Is4() {
		t.Error(got)
	}
}

func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		ipv4Bits, ipv6Bits int
		address, want      string
	}{
		{0, 0, "192.0.2.7", "192.0.2.7"},
		{24, 0, "192.0.2.7", "192.0.2.0/24"},
		{0, 0, "2001:db8:0:1:2::3", "2001:db8:0:1::/64"},
		{0, 128, "2001:db8::1", "2001:db8::1"},
		{0, 56, "2001:db8:0:1ff::", "2001:db8:0:100::/56"},
		{0, 0, "::ffff:192.0.2.7", "192.0.2.7"},
		{0, 0, "@", "unknown"},
	} {
		rules, err := New(nil, c.ipv4Bits, c.ipv6Bits)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := Parse(c.address)
		if got := string(rules.AppendNetwork(nil, rules.Network(a))); got != c.want {
			t.Errorf("%s: %s, want %s", c.address, got, c.want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	rules := mustNew(t, "10.0.0.0/8")
	lines := []string{"198.51.100.1, 2001:db8::7" + strings.Repeat(", 10.0.0.2", 1000)}
	if n := testing.AllocsPerRun(100, func() {
		rules.Network(rules.Client("10.0.0.1:80", lines))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzClientAddress checks the walk against the plainest statement of it: all entries of
// all lines in one list, from the right.
func FuzzClientAddress(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 198.51.100.1, 10.2.3.4")
	f.Add("10.0.0.1:1", "198.51.100.1\n10.0.0.9,\tunknown")
	f.Add("[::ffff:10.0.0.1%eth0]:1", "[2001:db8::7]:80\n::ffff:10.9.9.9")
	f.Add("@", ",,,")
	v4, v6 := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")
	rules := mustNew(f, v4.String(), v6.String())
	plain := func(a netip.Addr) bool { return v4.Contains(a) || v6.Contains(a) }
	f.Fuzz(func(t *testing.T, peer, lines string) {
		got := rules.Client(peer, strings.Split(lines, "\n"))

		want, _ := Parse(peer)
		entries := strings.Split(strings.Join(strings.Split(lines, "\n"), ","), ",")
		for plain(want) && len(entries) > 0 {
			last := len(entries) - 1
			if strings.Trim(entries[last], " \t\r\n") != "" {
				next, ok := Parse(entries[last])
				if !ok || next.IsUnspecified() {
					break
				}
				want = next
			}
			entries = entries[:last]
		}
		if want = Embedded(want); want.IsUnspecified() {
			want = netip.Addr{}
		}
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		if got.Is4In6() || got.Zone() != "" {
			t.Fatalf("%v is not in its plain form", got)
		}
		n := rules.Network(got)
		if n.IsValid() != got.IsValid() || n.IsValid() && rules.Network(n) != n {
			t.Fatalf("network of %v is %v", got, n)
		}
		// Parse reads every form of an address. (A zone may be anything, even
		// a bracket or a space.)
		if a, err := netip.ParseAddr(peer); err == nil && a.Zone() == "" {
			for _, form := range []string{
				peer, "[" + peer + "]", "[" + peer + "]:80",
				" " + peer,
			} {
				if b, ok := Parse(form); !ok || b != a.Unmap() {
					t.Fatalf("%q is %v", form, b)
				}
			}
		}
	})
}

// The values are read from the end, so that a client cannot hide or invent what proxies append. All
// addresses but those of 203.0.113.0/24 are proxies.
func TestForwarded(t *testing.T) {
	rules := mustNew(t, "192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32")
	const peer = "192.0.2.99"
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{"for=203.0.113.1"}, "203.0.113.1"},
		{[]string{"For=203.0.113.1;proto=http;by=192.0.2.43"}, "203.0.113.1"},
		{[]string{`for="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::17"},
		{[]string{"for=203.0.113.1, for=198.51.100.17", "by=a;for=\"192.0.2.4:80\""}, "203.0.113.1"},
		{[]string{"for=203.0.113.1, for=203.0.113.2", "for=192.0.2.4"}, "203.0.113.2"},
		{[]string{`for=203.0.113.1, for="_gazonk"`}, peer}, {[]string{"for=1.2.3.4, for=unknown"}, peer},
		{[]string{`for=1.2.3.4, for=_hidden, for=192.0.2.1`}, "192.0.2.1"},
		{[]string{`for=1.2.3.4, for="unknown:80"`}, peer},
		{[]string{`for="203.0.113.1:_port"`}, "203.0.113.1"},
		{[]string{`for="[2001:db8::1]:_p"`}, "2001:db8::1"},
		{[]string{" for = 203.0.113.1 ,, ,", ""}, "203.0.113.1"},
		{[]string{"for=1.2.3.4", "proto=https"}, peer}, {[]string{"for=1.2.3.4", "for="}, peer},
		{[]string{"for=1.2.3.4", `for=""`}, peer}, {[]string{"for=1.2.3.4", "for"}, peer},
		{[]string{"for=1.2.3.4", "192.0.2.1"}, peer}, {[]string{"xfor=192.0.2.1"}, peer},
		{[]string{"for=192.0.2.1;for=192.0.2.2"}, peer}, {[]string{`for="192.0.2.1, 192.0.2.2"`}, peer},
		{[]string{"for=[2001:db8::1"}, peer}, {[]string{"for=192.0.2.1;for="}, peer},
		// What a client writes stays left of what a proxy appends.
		{[]string{`for="203.0.113.1, for=203.0.113.2`}, "203.0.113.2"},
		{[]string{`for=203.0.113.2;host="a\", for=203.0.113.6;x=\"\\\"b"`}, "203.0.113.2"},
		{[]string{`for=203.0.113.1;host="a, for=203.0.113.2;b";proto=http`}, "203.0.113.1"},
		{[]string{"for=192.0.2.1;x=" + strings.Repeat(`\"`, 1<<20)}, "192.0.2.1"},
	} {
		got := rules.Behind(netip.MustParseAddr(peer), c.lines, true)
		if got.String() != c.want {
			t.Errorf("%.99q: %s, want %s", c.lines, got, c.want)
		}
	}
}
