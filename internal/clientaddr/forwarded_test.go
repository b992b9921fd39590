package clientaddr

import (
	"slices"
	"strings"
	"testing"
)

// The values are read from the end, so that a client cannot hide or invent what proxies append.
func TestForwarded(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{"for=192.0.2.1"}, "192.0.2.1"},
		{[]string{"For=192.0.2.1;proto=http;by=203.0.113.43"}, "192.0.2.1"},
		{[]string{`for="[2001:db8:cafe::17]:4711"`}, "[2001:db8:cafe::17]:4711"},
		{[]string{"for=192.0.2.43, for=198.51.100.17", "by=a;for=\"192.0.2.4:80\""},
			"192.0.2.43 198.51.100.17 192.0.2.4:80"},
		{[]string{`for="_gazonk", for=unknown, for=_hidden, for="unknown:80"`},
			"unknown unknown unknown unknown"},
		{[]string{`for="192.0.2.1:_port", for="[2001:db8::1]:_p"`}, "192.0.2.1 [2001:db8::1]"},
		{[]string{" for = 192.0.2.1 ,, ,", ""}, "192.0.2.1"},
		{[]string{"proto=https", "for=", `for=""`, "for", "192.0.2.1"},
			"unknown unknown unknown unknown unknown"},
		{[]string{"for=192.0.2.1;for=192.0.2.2", "xfor=192.0.2.1"}, "unknown unknown"},
		{[]string{`for="192.0.2.1, 192.0.2.2"`, `for=[2001:db8::1`}, "unknown unknown"},
		// What a client writes stays left of what a proxy appends.
		{[]string{`for="192.0.2.1, for=192.0.2.2`}, "unknown 192.0.2.2"},
		{[]string{`for=192.0.2.2;host="a\", for=192.0.2.6;x=\"\\\"b"`}, "192.0.2.2"},
		{[]string{`for=192.0.2.1;host="a, for=192.0.2.2;b";proto=http`}, "192.0.2.1"},
	} {
		if got := strings.Join(Forwarded(c.lines), " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.lines, got, c.want)
		}
	}
	long := "for=192.0.2.1;x=" + strings.Repeat(`\"`, 1<<20)
	if got := Forwarded([]string{long}); !slices.Equal(got, []string{"unknown"}) && len(got) != 1 {
		t.Errorf("%d elements", len(got))
	}
}
