package accesslog

import "testing"

// haproxyLine has the form of the example in
// https://docs.haproxy.org/dev/configuration.html#8.2.3.
const haproxyLine = `192.0.2.7:33317 [17/May/2015:10:05:03.655] http-in static/srv1` +
	` 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {h.example} {} "GET /a?b HTTP/1.1"`

func TestHAProxyLines(t *testing.T) {
	const stamp = `[17/May/2015:10:05:03.000] web~ `
	const counters = ` - - ---- 1/1/1/1/0 0/0 `
	checkLines(t, HAProxy, []lineTest{
		{"example", haproxyLine,
			request{"2015-05-17T10:05:03.655Z", "192.0.2.7", "", "", "/a", 2750}},
		{"IPv6", `2001:db8::1:33317 ` + stamp + `app/s1 0/0/0/1/1 200 17` + counters +
			`"GET / HTTP/1.1"`, request{at, "2001:db8::1", "", "", "/", 17}},
		{"IPv4 in IPv6", `::ffff:192.0.2.7:80 ` + stamp + `app/s1 0/0/0/1/1 200 17` + counters +
			`"GET / HTTP/1.1"`, request{at, "::ffff:192.0.2.7", "", "", "/", 17}},
		{"bad request", `192.0.2.7:59258 ` + stamp + `web/<NOSRV> -1/-1/-1/-1/384 400 0 - - CR--` +
			` 1/1/0/0/0 0/0 "<BADREQ>"`, request{at, "192.0.2.7", "", "", "", 0}},
		{"aborted", `192.0.2.7:59258 ` + stamp + `web/<NOSRV> -1/-1/-1/-1/1 -1 0 - - CR--` +
			` 1/1/0/0/0 0/0 "<BADREQ>"`, request{at, "192.0.2.7", "", "", "", 0}},
		{"HTTP/2", `192.0.2.7:1 ` + stamp + `app/s1 0/0/0/1/1 200 17` + counters +
			`"GET https://h.example/a?b HTTP/2.0"`, request{at, "192.0.2.7", "", "h.example", "/a", 17}},
		{"HTTPS log", haproxyLine + ` 0/0/0/0/0 h.example/TLSv1.3/TLS_AES_256_GCM_SHA384`,
			request{"2015-05-17T10:05:03.655Z", "192.0.2.7", "", "", "/a", 2750}},
		{"option logasap", `192.0.2.7:1 ` + stamp + `app/s1 0/0/0/1/+1 200 +17` + counters +
			`"GET / HTTP/1.1"`, request{at, "192.0.2.7", "", "", "/", 17}},
		{"spaces in a captured agent", `192.0.2.7:1 ` + stamp + `app/s1 0/0/0/1/1 200 17` +
			counters + `{h.example|Mozilla/5.0 (X11; #22x#22)} {} "GET /a#22 HTTP/1.1"`,
			request{at, "192.0.2.7", "", "", "/a", 17}},
		{"cookies", `192.0.2.7:1 ` + stamp + `app/s1 0/0/0/1/1 302 17 SID=a1 SID=b2 --NI` +
			` 1/1/1/1/0 0/0 "POST /a HTTP/1.1"`, request{at, "192.0.2.7", "", "", "/a", 17}},
		{"cut off by syslog", `192.0.2.7:1 ` + stamp + `app/s1 0/0/0/1/1 200 17` + counters +
			`"GET /aaaaa`, request{at, "192.0.2.7", "", "", "/aaaaa", 17}},
		{"socket", `unix:1 ` + stamp + `app/s1 0/0/0/1/1 200 17` + counters + `"GET / HTTP/1.1"`,
			request{at, "unix", "", "", "/", 17}},
	})
}

func TestMalformedHAProxyLines(t *testing.T) {
	checkMalformed(t, haproxyLine, []malformedTest{
		{`Proxy http-in started.`, errProxyOrigin},
		{` [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 200 1 "-"`, errProxyOrigin},
		{` 192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 200 1 "-"`, errProxyOrigin},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b 1/1/1/1/1 200 1 "-"`, errProxyTimers},
		{`192.0.2.7:1 [17/May/2015:10:05:03] f b/s 1/1/1/1/1 200 1 "-"`, errProxyTime},
		{`192.0.2.7:1 [17/May/2015:10:05:03.1234] f b/s 1/1/1/1/1 200 1 "-"`, errProxyTime},
		{`192.0.2.7:1 [31/Feb/2015:10:05:03.123] f b/s 1/1/1/1/1 200 1 "-"`, errProxyTime},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f/1: Connection error during SSL handshake`,
			errProxyTimers},
		// a TCP log
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 0/0/5007 212 -- 0/0/0/0/3 0/0`,
			errProxyTimers},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 OK 1 "-"`, errProxyStatus},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 200 many "-"`, errProxySize},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 200 17 - - ---- 1/1`,
			errProxyRequest},
	})
}
