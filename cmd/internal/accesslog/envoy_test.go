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
		{"no values", stamp + `"- - HTTP/1.1" 400 DPE 0 11 2 - "-" "-" "-" "-" "-"`,
			request{at, "", "", "", "", 11}},
		{"no request", stamp + `"- - -" 400 DPE 0 11 2 - "-" "-" "-" "-" "-"`,
			request{at, "", "", "", "", 11}},
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

// istioLine has the form of the example in
// https://istio.io/latest/docs/tasks/observability/logs/access-log.
const istioLine = `[2015-05-17T10:05:03.373Z] "GET /status/418?a HTTP/1.1" 418 - via_upstream -` +
	` "-" 0 17 4 4 "192.0.2.7" "curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88"` +
	` "h.example:8000" "10.44.1.27:80" outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652` +
	` 10.0.45.184:8000 10.44.1.23:46520 - default`

func TestIstioLines(t *testing.T) {
	const stamp = `[2015-05-17T10:05:03.000Z] `
	const headers = ` "-" "curl" "id" "h.example" "-" - - 10.0.45.184:8000`
	checkLines(t, Istio, []lineTest{
		{"example", istioLine, request{"2015-05-17T10:05:03.373Z", "10.44.1.23:46520", "",
			"h.example:8000", "/status/418", 17}},
		{"reasons", stamp + `"GET / HTTP/2" 503 UF,URX upstream_reset{a,b} peer closed` +
			` "TLS error: 1:SSL" 0 91 2 -` + headers + ` [2001:db8::1]:46520 h.example -`,
			request{at, "[2001:db8::1]:46520", "", "h.example", "/", 91}},
		{"quotes in the agent", stamp + `"GET / HTTP/2" 200 - via_upstream - "-" 0 17 2 1 "192.0.2.7"` +
			` "a" "b" "c" "id" "h.example" "-" - - - 192.0.2.9:1 - -`,
			request{at, "192.0.2.9:1", "", "h.example", "/", 17}},
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
		{stamp + `"GET / HTTP/1.1" 200 - x`, errEnvoySize},
		{stamp + `"GET / HTTP/1.1" 200 - via_upstream - "-" 0 x`, errEnvoySize},
		{stamp + `"GET / HTTP/1.1" 200 - via_upstream - "-" 0 1 2 3`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - via_upstream - "-" 0 1 2 3 "a" "b" "c" "d" "e" - - -`,
			errIstioPeer},
		{stamp + `"- - -" 0 DC 0 0 2 - "-" "-" "-" "-" "10.0.0.1:80"`, errConnection},
		{stamp + `"- - -" 0 - - - "-" 99 17 2 - "-" "-" "-" "-" "10.0.0.1:80" a b c d - -`,
			errConnection},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3 "192.0.2.7" "curl"`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3 "192.0.2.7" "id" "host" "upstream"`, errEnvoyHeaders},
		{stamp + `"GET / HTTP/1.1" 200 - 0 1 2 3 192.0.2.7" "a" "b" "c" "d"`, errEnvoyHeaders},
	})
}
