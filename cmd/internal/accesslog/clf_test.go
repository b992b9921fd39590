package accesslog

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// request is a Record that can be kept and compared.
type request struct {
	time                 string
	ip, user, host, path string
	size                 int64
}

func kept(rec *Record) request {
	return request{
		time.Unix(0, rec.Time).UTC().Format(time.RFC3339Nano),
		string(rec.Peer), string(rec.User), string(rec.Host), string(rec.Path), rec.Size,
	}
}

// read reads a log to its end, into its requests and malformed lines.
func read(t *testing.T, r io.Reader, s Schema) (got []request, bad []*LineError, f Format) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, err := NewReader(ctx, "a.log", r, s)
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	for {
		err := reader.Next(&rec)
		var lineErr *LineError
		switch {
		case err == nil:
			got = append(got, kept(&rec))
		case errors.As(err, &lineErr):
			bad = append(bad, lineErr)
		case errors.Is(err, io.EOF):
			return got, bad, reader.Format()
		default:
			t.Fatal(err)
		}
	}
}

// one reads a single line, which must be a request.
func one(t *testing.T, line string) (request, Format) {
	t.Helper()
	got, bad, format := read(t, strings.NewReader(line), Schema{})
	if len(got) != 1 || len(bad) != 0 {
		t.Fatalf("%.300q gave %v, malformed %v", line, got, bad)
	}
	return got[0], format
}

const at = "2015-05-17T10:05:03Z" // [17/May/2015:10:05:03 +0000]

func TestCLFLines(t *testing.T) {
	const stamp = `[17/May/2015:10:05:03 +0000]`
	for _, tt := range []struct {
		name, line string
		want       request
		format     Format
	}{
		{"common", `1.2.3.4 - - ` + stamp + ` "GET /a HTTP/1.1" 200 17`,
			request{at, "1.2.3.4", "", "", "/a", 17}, Common},
		{"combined", `1.2.3.4 - - ` + stamp + ` "GET /a?b=c HTTP/1.1" 200 17 "-" "curl"`,
			request{at, "1.2.3.4", "", "", "/a", 17}, Combined},
		{"ISO 8601", `1.2.3.4 - - [2015-05-17T12:05:03+02:00] "GET /a HTTP/1.1" 200 17`,
			request{at, "1.2.3.4", "", "", "/a", 17}, Common},
		{"user", `1.2.3.4 id frank ` + stamp + ` "GET / HTTP/1.0" 200 0`,
			request{at, "1.2.3.4", "frank", "", "/", 0}, Common},
		{"user with spaces", `1.2.3.4 - Frank N. Furter ` + stamp + ` "GET / HTTP/1.0" 200 1`,
			request{at, "1.2.3.4", "Frank N. Furter", "", "/", 1}, Common},
		{"more than 4 GiB", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 123456789012345678`,
			request{at, "1.2.3.4", "", "", "/", 123456789012345678}, Common},
		{"no size", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 304 - "-" "x"`,
			request{at, "1.2.3.4", "", "", "/", Unknown}, Combined},
		{"IPv6", `2001:db8::1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1`,
			request{at, "2001:db8::1", "", "", "/", 1}, Common},
		{"host name", `crawl.example.com - - ` + stamp + ` "GET / HTTP/1.1" 200 1`,
			request{at, "crawl.example.com", "", "", "/", 1}, Common},
		{"no client", `- - - ` + stamp + ` "GET / HTTP/1.1" 200 1`,
			request{at, "", "", "", "/", 1}, Common},
		{"quoted quotes", `1.2.3.4 - - ` + stamp + ` "GET /\"a\\\" HTTP/1.1" 200 1 "\"" "x"`,
			request{at, "1.2.3.4", "", "", `/\"a\\\"`, 1}, Combined},
		{"escaped backslash", `1.2.3.4 - - ` + stamp + ` "GET /a\\" 200 1`,
			request{at, "1.2.3.4", "", "", `/a\\`, 1}, Common},
		{"spaces in the path", `1.2.3.4 - - ` + stamp + ` "GET /a b HTTP/1.1" 200 1`,
			request{at, "1.2.3.4", "", "", "/a b", 1}, Common},
		{"no request", `1.2.3.4 - - ` + stamp + ` "-" 408 - "-" "-"`,
			request{at, "1.2.3.4", "", "", "", Unknown}, Combined},
		{"TLS to a plain port", `1.2.3.4 - - ` + stamp + ` "\x16\x03\x01" 400 226`,
			request{at, "1.2.3.4", "", "", "", 226}, Common},
		{"request to a proxy", `1.2.3.4 - - ` + stamp + ` "GET http://h.example/p HTTP/1.1" 200 1`,
			request{at, "1.2.3.4", "", "h.example", "/p", 1}, Common},
		{"no status", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" - 1`,
			request{at, "1.2.3.4", "", "", "/", 1}, Common},
		{"cut off in the agent", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 "-" "Moz`,
			request{at, "1.2.3.4", "", "", "/", 1}, Combined},
		{"zone", `1.2.3.4 - - [17/May/2015:12:35:03 +0230] "GET / HTTP/1.1" 200 1`,
			request{at, "1.2.3.4", "", "", "/", 1}, Common},
		{"IPv6 and port", `[2001:db8::1]:443 - - ` + stamp + ` "GET / HTTP/1.1" 200 1`,
			request{at, "[2001:db8::1]:443", "", "", "/", 1}, Common},
		{"user with a bracket", `1.2.3.4 - a[b ` + stamp + ` "GET / HTTP/1.1" 200 1`,
			request{at, "1.2.3.4", "a[b", "", "/", 1}, Common},
		{"user like a time", `1.2.3.4 - ` + stamp + ` \"] ` + stamp + ` "GET / HTTP/1.1" 200 1`,
			request{at, "1.2.3.4", stamp + ` \"]`, "", "/", 1}, Common},
		{"request like a time", `1.2.3.4 - - ` + stamp + ` "GET /[a] \"b HTTP/1.1" 200 1`,
			request{at, "1.2.3.4", "", "", `/[a] \"b`, 1}, Common},
		{"Traefik", `1.2.3.4 - - ` + stamp + ` "GET /a HTTP/2.0" 200 17 "-" "curl/8" 12 "web@docker"` +
			` "http://10.0.1.15:3000" 14ms`, request{at, "1.2.3.4", "", "", "/a", 17}, Combined},
		{"HAProxy, option httplog clf", `1.2.3.4 - - ` + stamp + ` "GET /a HTTP/1.1" 200 17 "" ""` +
			` 33317 655 "http-in" "static" "srv1" 10 0 30 69 109 "----" 1 1 1 1 0 0 0 "" "" "" ""`,
			request{at, "1.2.3.4", "", "", "/a", 17}, Combined},
		{"CRLF", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 1` + "\r\n",
			request{at, "1.2.3.4", "", "", "/", 1}, Common},
	} {
		got, format := one(t, tt.line)
		if got != tt.want || format != tt.format {
			t.Errorf("%s: got %+v (%s), want %+v (%s)", tt.name, got, format, tt.want, tt.format)
		}
	}
}

func TestMalformedCLFLines(t *testing.T) {
	for _, tt := range []struct {
		line string
		want error
	}{
		{`hello`, errOrigin},
		{`1.2.3.4 - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, errClient},
		{`1.2.3.4 - -`, errOrigin},
		{`1.2.3.4 - -[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, errOrigin},
		{`[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, errOrigin},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000 x] "GET / HTTP/1.1" 200 1`, errTime},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000`, errTime},
		{`1.2.3.4 - - [17/Mai/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, errTime},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] GET / HTTP/1.1 200 1`, errRequest},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1`, errRequest},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1\" 200 1`, errRequest},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000]`, errRequest},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1"`, errStatus},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 20 1`, errStatus},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 2x0 1`, errStatus},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200`, errSize},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 `, errSize},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 -1`, errSize},
		{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1234567890123456789`,
			errSize},
	} {
		got, bad, format := read(t, strings.NewReader(tt.line), Schema{})
		if len(got) != 0 || len(bad) != 1 || !errors.Is(bad[0], tt.want) || format != Undetected {
			t.Errorf("%s: got %v, malformed %v, format %q; want %v", tt.line, got, bad, format,
				tt.want)
		}
	}
}
