package accesslog

import "testing"

// envoyLine has the form of the example in
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage.
const envoyLine = `[2015-05-17T10:05:03.310Z] "POST /a/locations?b HTTP/2" 204 - 154 17 226 100` +
	` "192.0.2.7" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "h.example" "tcp://10.0.2.1:80"`

func TestEnvoyLines(t *testing.T) {
	const stamp, end = `[2015-05-17T10:05:03.000Z] `, ` "id" "h.example" "10.0.2.1:80"`
	checkLines(t, Envoy, []lineTest{
		{"example", envoyLine,
			request{"2015-05-17T10:05:03.31Z", "192.0.2.7", "", "h.example", "/a/locations", 17}},
		{"list", stamp + `"GET / HTTP/1.1" 200 - 0 17 2 1 "192.0.2.7, 10.0.0.1,2001:db8::1" "curl"` +
			end, request{at, "192.0.2.7, 10.0.0.1,2001:db8::1", "", "h.example", "/", 17}},
		{"no values", stamp + `"- - -" 0 DC 0 0 2 - "-" "-" "-" "-" "-"`,
			request{at, "", "", "", "", 0}},
		{"no route", stamp + `"GET /a HTTP/1.1" 404 NR 0 0 0 - "192.0.2.7" "-" "id" "h.example" "-"`,
			request{at, "192.0.2.7", "", "h.example", "/a", 0}},
		{"spaces in the agent", stamp + `"GET / HTTP/3" 200 UC,URX 0 17 2 1 "192.0.2.7"` +
			` "Mozilla/5.0 (X11; Linux)"` + end, request{at, "192.0.2.7", "", "h.example", "/", 17}},
		{"quotes in the agent", stamp + `"GET / HTTP/2" 200 - 0 17 2 1 "192.0.2.7" "a" "b" "c\"` +
			end, request{at, "192.0.2.7", "", "h.example", "/", 17}},
		{"empty values", stamp + `"GET / HTTP/2" 200 - 0 17 2 1 "" "" "" "" ""`,
			request{at, "", "", "", "/", 17}},
		{"IPv6 and port", stamp + `"GET / HTTP/2" 200 - 0 17 2 1 "[::1]:99" "-" "-" "h.example:99" "-"`,
			request{at, "[::1]:99", "", "h.example:99", "/", 17}},
	})
}

func TestMalformedEnvoyLines(t *testing.T) {
	const stamp = `[2015-05-17T10:05:03.310Z] `
	checkMalformed(t, envoyLine, []malformedTest{
		{`[2015-05-17 10:05:03.310][1][info][main] starting main dispatch loop`, errEnvoyTime},
		{`[2015-05-17T10:05:03.310Z]`, errEnvoyTime},
		{`[2015-05-17T10:05:03.310] "GET / HTTP/1.1" 200`, errEnvoyTime},
		{`x "GET / HTTP/1.1" 200`, errEnvoyTime},
		{`] "GET / HTTP/1.1" 200`, errEnvoyTime},
		{stamp + `"GET / HTTP/1.1"`, errEnvoyRequest},
		{stamp + `"GET / HTTP/1.1" `, errEnvoyStatus},
		{stamp + `"GET / HTTP/1.1" 2000 - 0 1`, errEnvoyStatus},
		{stamp + `"GET / HTTP/1.1" - - 0 1`, errEnvoyStatus},
		{stamp + `"GET / HTTP/1.1" 200 - 0 x`, errEnvoySize},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3 "192.0.2.7" "curl"`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3 "192.0.2.7" "id" "host" "upstream"`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3 192.0.2.7" "a" "b" "c" "d"`, errEnvoyHeaders},
	})
}
