package accesslog

import "testing"

// albLine has the form of the example in
// docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html.
const albLine = `https 2015-05-17T10:05:03.186641Z app/my-lb/50dc6c495c0c9188 192.0.2.7:2817` +
	` 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://h.example:443/a?b HTTP/1.1"` +
	` "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:x:1:t/my/7` +
	` "Root=1-58337281-1d84f3d73c47ec4e58577259" "h.example" "arn:aws:acm:x:1:certificate/2" 1` +
	` 2015-05-17T10:05:02.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`

func TestALBLines(t *testing.T) {
	const stamp, rest = ` 2015-05-17T10:05:03Z app/lb/1 `, ` "curl/7" - - arn "Root=1" "-" "-" 0`
	checkLines(t, ALB, []lineTest{
		{"HTTPS", albLine,
			request{"2015-05-17T10:05:03.186641Z", "192.0.2.7", "", "h.example", "/a", 57}},
		{"HTTP/2 and IPv6", `h2` + stamp + `2a02:db8:4538:1:bcf4:5264:e01c:f215:50718 10.0.0.1:80` +
			` 0.000 0.003 0.000 401 401 29 805 "GET https://h.example:443/a HTTP/2.0"` + rest,
			request{at, "2a02:db8:4538:1:bcf4:5264:e01c:f215", "", "h.example", "/a", 805}},
		{"brackets", `http` + stamp + `[::1]:99 - -1 -1 -1 400 - 172 370` +
			` "GET http://[::ffff:a9fe:a9fe]:443/ HTTP/1.1"` + rest,
			request{at, "[::1]", "", "[::ffff:a9fe:a9fe]", "/", 370}},
		{"no target", `http` + stamp + `192.0.2.7:1 - -1 -1 -1 503 - 34 366` +
			` "GET http://h.example:80/ HTTP/1.1"` + rest,
			request{at, "192.0.2.7", "", "h.example", "/", 366}},
		{"invalid request", `http` + stamp + `192.0.2.7:1 - -1 -1 -1 400 - 0 272` +
			` "- http://h.example:80- -"` + rest, request{at, "192.0.2.7", "", "h.example", "", 272}},
		{"invalid request with a path", `http` + stamp + `192.0.2.7:1 - -1 -1 -1 400 - 0 272` +
			` "- http://h.example:80/a -"` + rest,
			request{at, "192.0.2.7", "", "h.example", "/a", 272}},
		{"no request", `http` + stamp + `192.0.2.7:1 - -1 -1 -1 460 - 0 0 "- - -"` + rest,
			request{at, "192.0.2.7", "", "", "", 0}},
		{"WebSocket", `ws` + stamp + `192.0.2.7:1 10.0.0.1:80 0.001 0.003 0.000 101 101 218 587` +
			` "GET http://h.example:80/chat HTTP/1.1" "-" - - arn`,
			request{at, "192.0.2.7", "", "h.example", "/chat", 587}},
		{"gRPC", `grpcs` + stamp + `192.0.2.7:1 10.0.0.1:80 0.0 0.0 0.0 200 200 218 587` +
			` "POST https://h.example:443/pkg.Service/Method HTTP/2.0" "grpc go" - - arn`,
			request{at, "192.0.2.7", "", "h.example", "/pkg.Service/Method", 587}},
		{"quotes", `wss` + stamp + `192.0.2.7:1 10.0.0.1:80 0.0 0.0 0.0 200 200 218 587` +
			` "GET https://h.example:443/\"a b HTTP/1.1" "\"Mozilla\" 5" - - arn`,
			request{at, "192.0.2.7", "", "h.example", `/\"a b`, 587}},
	})
}

// elbLine has the form of the example in
// docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html.
const elbLine = `2015-05-17T10:05:03.945958Z my-lb 192.0.2.7:2817 10.0.0.1:80 0.000086 0.001048` +
	` 0.001337 200 200 0 57 "GET https://h.example:443/a?b HTTP/1.1" "curl/7.38.0"` +
	` DHE-RSA-AES128-SHA TLSv1.2`

func TestELBLines(t *testing.T) {
	checkLines(t, ELB, []lineTest{
		{"HTTPS", elbLine,
			request{"2015-05-17T10:05:03.945958Z", "192.0.2.7", "", "h.example", "/a", 57}},
		{"no backend", `2015-05-17T10:05:03Z my-lb 192.0.2.7:1 - -1 -1 -1 503 0 0 0` +
			` "GET http://h.example:80/ HTTP/1.1" "-" - -`,
			request{at, "192.0.2.7", "", "h.example", "/", 0}},
	})
}

func TestMalformedALBLines(t *testing.T) {
	const begin = `https 2015-05-17T10:05:03.186641Z app/lb/1 192.0.2.7:1 10.0.0.1:80 0 0 0 `
	checkMalformed(t, albLine, []malformedTest{
		{`Enable AWSLogs for ELB`, errALBOrigin},
		{`tls 2015-05-17T10:05:03Z app/lb/1 192.0.2.7:1`, errALBOrigin},
		{`2015-05-17 my-lb 192.0.2.7:1`, errALBOrigin},
		{`2015-05-17T10:05:03Z my-lb`, errALBClient},
		{`2015-05-17T10:05:03Z my-lb 192.0.2.7:1 10.0.0.1:80 0 0 0 - - 82 305 "- - - " "-" - -`,
			errConnection},
		{`https 2015-05-17 app/lb/1 192.0.2.7:1`, errALBTime},
		{`https`, errALBTime},
		{`https 2015-05-17T10:05:03Z app/lb/1`, errALBClient},
		{begin + `2000 200 1 1 "GET / HTTP/1.1"`, errALBStatus},
		{begin, errALBStatus},
		{begin + `200 200 1 "GET / HTTP/1.1"`, errALBSize},
		{begin + `200 200 1 1 GET / HTTP/1.1`, errALBRequest},
		{begin + `200 200 1 1 "GET / HTTP/1.1`, errALBRequest},
	})
}
