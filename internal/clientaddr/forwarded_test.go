package clientaddr

import (
	"net/netip"
	"strings"
	"testing"
)

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
