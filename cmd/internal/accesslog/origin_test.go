package accesslog

import (
	"errors"
	"strings"
	"testing"
)

func TestOrigins(t *testing.T) {
	for _, tt := range []struct{ origin, ip, user, host string }{
		{"192.0.2.7 - -", "192.0.2.7", "", ""},
		{"192.0.2.7:443 - eve", "192.0.2.7:443", "eve", ""},
		{"192.0.2.7 ident eve", "192.0.2.7", "eve", ""},
		{"192.0.2.7 - - - x", "192.0.2.7", "- - x", ""}, // a client chose that name
		{"192.0.2.7 - 10.0.0.1 - -", "192.0.2.7", "10.0.0.1 - -", ""},

		// vhost_combined, and without the port
		{"www.example.com:80 192.0.2.7 - -", "192.0.2.7", "", "www.example.com"},
		{"www.example.com:80 192.0.2.7 ident eve", "192.0.2.7", "eve", "www.example.com"},
		{"www.example.com:80 client.example - -", "client.example", "", "www.example.com"},
		{"www.example.com 192.0.2.7 - -", "192.0.2.7", "", "www.example.com"},
		{"198.51.100.1:80 192.0.2.7 - -", "192.0.2.7", "", "198.51.100.1"},
		{"[2001:db8::1]:443 192.0.2.7 - -", "192.0.2.7", "", "[2001:db8::1]"},
		{"198.51.100.1:45678 192.0.2.7 - -", "", "", ""}, // or is it a client before a proxy?
		{"- 192.0.2.7 - -", "192.0.2.7", "", ""},

		// X-Forwarded-For
		{"192.0.2.7, 10.0.0.1 - -", "192.0.2.7, 10.0.0.1", "", ""},
		{"192.0.2.7,10.0.0.1 - eve", "192.0.2.7,10.0.0.1", "eve", ""},
		{"www.example.com:80 192.0.2.7, 10.0.0.1 - -", "192.0.2.7, 10.0.0.1", "", "www.example.com"},
		{", 10.0.0.1 - -", "", "", ""},

		// prefixes of other programs
		{"17:2001:db8::7 - -", "", "", ""}, // grep -n
		{"[web/nginx] 192.0.2.7 - -", "", "", ""},
		{"2015-05-17T10:05:03Z 192.0.2.7 - -", "192.0.2.7", "", ""},
		{"unix: - -", "unix:", "", ""},
		{"192.0.2.7, 10.0.0.1", "", "", ""},
		{"192.0.2.7   - eve", "", "", ""}, // padded: the user would be "- eve"
		{"192.0.2.7, 10.0.0.1 198.51.100.1 - -", "", "", ""},
		{"192.0.2.7 198.51.100.1 - -", "", "", ""},
		{"www.example.com:80 192.0.2.7 198.51.100.1 - -", "", "", ""},
	} {
		line := tt.origin + ` [17/May/2015:10:05:03 +0000] "GET /p HTTP/1.1" 200 1`
		got, bad, _ := read(t, strings.NewReader(line), Schema{})
		if tt.ip == "" {
			if len(got) != 0 || len(bad) != 1 || !errors.Is(bad[0], errClient) {
				t.Errorf("%s: got %+v, malformed %v; want malformed", tt.origin, got, bad)
			}
			continue
		}
		want := request{at, tt.ip, tt.user, tt.host, "/p"}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %+v, malformed %v; want %+v", tt.origin, got, bad, want)
		}
	}
}

// X-Forwarded-For is read from the third field in quotes or from the field of a JSON log.
func TestForwarded(t *testing.T) {
	const combined = `10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`
	for _, tt := range []struct{ line, want string }{
		{combined, ""},
		{combined + ` "-" "curl" "-"`, ""},
		{combined + ` "-" "curl" "192.0.2.7"`, "192.0.2.7"},
		{combined + ` "-" "\" \"1.2.3.4\"" "192.0.2.7, 10.0.0.2" 0.003`, "192.0.2.7, 10.0.0.2"},
		{combined + ` 0.003 "-" "curl" "192.0.2.7"`, ""},
		{`{"ts":1431857103,"status":200,"remote_addr":"10.0.0.1","http_x_forwarded_for":"192.0.2.7"}`,
			"192.0.2.7"},
		{`{"ts":1431857103,"uri":"/","request":{"headers":{"X-Forwarded-For":["192.0.2.7"]}}}`,
			"192.0.2.7"},
		{`{"ts":1431857103,"uri":"/","request":{"headers":` +
			`{"X-Forwarded-For":["1.2.3.4","\n","192.0.2.7"]}}}`,
			"1.2.3.4,\n,192.0.2.7"},
		{`{"ts":1431857103,"status":200,"x-forwarded-for":"192.0.2.7,%2010.0.0.2"}`,
			"192.0.2.7, 10.0.0.2"},
		{`{"ts":1431857103,"uri":"/","request":{"headers":{"X-Forwarded-For":[]}}}`, ""},
		{`{"ts":1431857103,"status":200,"ClientAddr":"10.0.0.1:99","ClientHost":"192.0.2.7"}`,
			"192.0.2.7"},
		{`{"ts":1431857103,"status":200,"ClientIP":"10.0.0.1",` +
			`"RequestHeaders":{"x-forwarded-for":"192.0.2.7"}}`, "192.0.2.7"},
		{`ts=1431857103 status=200 remote_addr=10.0.0.1 x_forwarded_for="192.0.2.7, 10.0.0.2"`,
			"192.0.2.7, 10.0.0.2"},
		{istioLine, "192.0.2.7"},
		{"#Fields: date time c-ip sc-status X-Forwarded-For\n2015-05-17 10:05:03 10.0.0.1 200 " +
			"192.0.2.7:33453,+192.0.2.8,%2010.0.0.2", "192.0.2.7:33453, 192.0.2.8, 10.0.0.2"},
	} {
		r, err := NewReader(t.Context(), "a.log", strings.NewReader(tt.line), Schema{})
		var rec Record
		if err = errors.Join(err, r.Next(&rec)); errors.Is(err, ErrMessage) { // #Fields
			err = r.Next(&rec)
		}
		if err != nil || string(rec.Forwarded) != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.line, rec.Forwarded, err, tt.want)
		}
	}
}
