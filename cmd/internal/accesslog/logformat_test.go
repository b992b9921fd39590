package accesslog

import (
	"errors"
	"strings"
	"testing"
)

// combinedFormat is the format combined in
// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format.
const combinedFormat = `$remote_addr - $remote_user [$time_local] "$request" $status ` +
	`$body_bytes_sent "$http_referer" "$http_user_agent"`

func TestLogFormats(t *testing.T) {
	const stamp = `17/May/2015:10:05:03 +0000`
	for _, tt := range []struct {
		name, format, line string
		want               request
	}{
		{"combined", combinedFormat,
			`2001:db8::1 - eve [` + stamp + `] "GET /a?b HTTP/2.0" 200 17 "-" "Mozilla/5.0 (X11)"`,
			request{at, "2001:db8::1", "eve", "", "/a"}},
		{"milliseconds", `$msec|$remote_addr|$host|$request_method $uri|$bytes_sent`,
			`1431857103.123|192.0.2.7|h.example|GET /a b|17`,
			request{"2015-05-17T10:05:03.123Z", "192.0.2.7", "", "h.example", "/a b"}},
		{"braces and unknown variables", `[${time_iso8601}] ${upstream_addr} "$http_x_forwarded_for"`,
			`[2015-05-17T12:05:03+02:00] 10.0.0.1:80, 10.0.0.2:80 "192.0.2.7, 10.0.0.3"`,
			request{at, "192.0.2.7, 10.0.0.3", "", "", ""}},
		{"JSON by hand", `{"a":"$remote_addr","t":"$time_iso8601","u":"$remote_user"}`,
			`{"a":"192.0.2.7","t":"2015-05-17T10:05:03Z","u":"a\"b"}`,
			request{at, "192.0.2.7", `a\"b`, "", ""}},
		{"as in the lines of docker compose", `$http_host | $remote_addr | $time_local`,
			`h.example | 192.0.2.7 | ` + stamp, request{at, "192.0.2.7", "", "h.example", ""}},
		{"further fields after the client", `[$time_local] $remote_addr`,
			`[` + stamp + `] 192.0.2.7 extra 5`, request{at, "192.0.2.7", "", "", ""}},
		{"further fields after the time", `$remote_addr $time_local`, `192.0.2.7 ` + stamp + ` extra 5`,
			request{at, "192.0.2.7", "", "", ""}},
		{"further fields after the size", `$remote_addr $msec $body_bytes_sent`,
			`192.0.2.7 1431857103.000 17 5`, request{at, "192.0.2.7", "", "", ""}},
	} {
		got, bad, format := read(t, strings.NewReader(tt.line), Schema{LogFormat: tt.format})
		if len(got) != 1 || got[0] != tt.want || format != LogFormat {
			t.Errorf("%s: got %+v (%s), malformed %v; want %+v", tt.name, got, format, bad, tt.want)
		}
	}
}

func TestLogFormatMistakes(t *testing.T) {
	for _, tt := range []struct{ format, want string }{
		{`combined`, "has no time"},
		{`$remote_addr "$request"`, "has no time: want $time_local"},
		{`[$time_local] "$request"`, "has no client: want $remote_addr"},
		{`$remote_addr$time_local`, "text after each variable"},
		{`$remote_addr [$time_local] $`, "a name after each $"},
	} {
		err := Schema{LogFormat: tt.format}.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.format, err, tt.want)
		}
	}
	named := Schema{LogFormat: `$a $b`, Names: map[string]string{"time": "a", "ip": "b"}}
	if err := named.Validate(); err != nil {
		t.Errorf("variables with names: %v", err)
	}
}

func TestLinesOfAnotherLogFormat(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`192.0.2.7 - - 17/May/2015:10:05:03 +0000`, `want $remote_user before " ["`},
		{`192.0.2.7 - - [17/Mai/2015:10:05:03] "GET / HTTP/1.1" 200 1 "-" "-"`, errBadTime.want},
		{`192.0.2.7 - - [] "GET / HTTP/1.1" 200 1 "-" "-"`, "no field with a time"},
		{`192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1\" 200 1 "-" "-"`,
			`want $status before " "`},
		{`<b> - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, errFormatClient.want},
	} {
		_, bad, _ := read(t, strings.NewReader(tt.line), Schema{LogFormat: combinedFormat})
		var l *lack
		if len(bad) != 1 || !errors.As(bad[0], &l) || !strings.HasPrefix(l.want, tt.want) {
			t.Errorf("%s: malformed %v, want %s", tt.line, bad, tt.want)
		}
	}
	_, bad, _ := read(t, strings.NewReader("x"), Schema{LogFormat: "<$remote_addr> $msec"})
	if len(bad) != 1 || bad[0].Err.Error() != `nearest is log_format: want "<" at the start` {
		t.Errorf("malformed %v, want what the format begins with", bad)
	}
}
