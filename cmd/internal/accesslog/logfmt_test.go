package accesslog

import "testing"

const logfmtLine = `ts=2015-05-17T10:05:03Z level=info method=GET host=h.example path="/a?b=c d"` +
	` remote_addr=192.0.2.7:5678 user=eve status=200 bytes=17 duration=1.2ms agent="Mozilla/5.0 (X)"`

func TestLogfmtLines(t *testing.T) {
	const stamp = `ts=1431857103 `
	checkLines(t, Logfmt, []lineTest{
		{"usual", logfmtLine, request{at, "192.0.2.7:5678", "eve", "h.example", "/a", 17}},
		{"IPv6 and time last", `ip=2001:db8::1 uri=/a time="17/May/2015:12:05:03 +0200"`,
			request{at, "2001:db8::1", "", "", "/a", Unknown}},
		{"brackets", `time=2015-05-17T10:05:03Z remote_addr=[2001:db8::1]:51000 path=/ user=[a]`,
			request{at, "[2001:db8::1]:51000", "[a]", "", "/", Unknown}},
		{"milliseconds", `msec=1431857103.123 ip=::1`,
			request{"2015-05-17T10:05:03.123Z", "::1", "", "", "", Unknown}},
		{"keys without a value", stamp + `debug ip= user="" remote_user=- path=/ done`,
			request{at, "", "", "", "/", Unknown}},
		{"quoted quotes", stamp + `user="a\"b=\"c" path="/\\"`,
			request{at, "", `a"b="c`, "", `/\`, Unknown}},
		{"equals signs", stamp + `uri=/a?b=c=d ip=192.0.2.7`,
			request{at, "192.0.2.7", "", "", "/a", Unknown}},
		{"empty at the end", stamp + `ip=192.0.2.7 user=`,
			request{at, "192.0.2.7", "", "", "", Unknown}},
		{"several spaces", stamp + `  ip=192.0.2.7   size=17  `,
			request{at, "192.0.2.7", "", "", "", 17}},
		{"X-Forwarded-For", stamp + `x_forwarded_for="192.0.2.7, 10.0.0.1" request="GET /a HTTP/2"`,
			request{at, "192.0.2.7, 10.0.0.1", "", "", "/a", Unknown}},
		{"twice", stamp + `ip=1.1.1.1 ip=192.0.2.7`, request{at, "192.0.2.7", "", "", "", Unknown}},
	})
}

func TestMalformedLogfmtLines(t *testing.T) {
	checkMalformed(t, logfmtLine, []malformedTest{
		{`hello world ts=1431857103`, errPair},
		{`hello`, errPair},
		{`=x ts=1431857103`, errPair},
		{`ts=1431857103 =x`, errPair},
		{`ts=1431857103 user="a`, errPair},
		{`ts=1431857103 user="a"b`, errPair},
		{`ts=1431857103 "user=a"`, errPair},
		{`ip=192.0.2.7`, errNoTime},
		{`ts=1431857103 level=info msg=starting`, errNoPart},
		{`ts= ip=192.0.2.7`, errNoTime},
		{`ts=yesterday ip=192.0.2.7`, errBadTime},
	})
}
