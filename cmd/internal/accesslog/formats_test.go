package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const caddyLine = `{"level":"info","ts":1646861401.524102,"logger":"http.log.access",` +
	`"msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342",` +
	`"client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"localhost",` +
	`"uri":"/a?b=c","headers":{"User-Agent":["curl/7.82.0"],"X-Api-Key":["k1","k2"]},` +
	`"tls":{"resumed":false}},"bytes_read":0,"user_id":"eve","duration":0.0009,"size":10900,` +
	`"status":200,"resp_headers":{"Server":["Caddy"]}}`

const nginxLine = `{"time_iso8601":"2015-05-17T12:05:03+02:00","remote_addr":"1.2.3.4",` +
	`"remote_user":"","request":"GET /x?y HTTP/1.1","status":"200","body_bytes_sent":"17",` +
	`"http_host":"h.example"}`

// traefikLine has the fields of https://doc.traefik.io/traefik/observability/access-logs/.
const traefikLine = `{"ClientAddr":"192.0.2.7:58094","ClientHost":"192.0.2.7",` +
	`"ClientPort":"58094","ClientUsername":"-","DownstreamContentSize":17,"DownstreamStatus":304,` +
	`"Duration":14729375,"OriginStatus":304,"RequestAddr":"h.example:80","RequestCount":122,` +
	`"RequestHost":"h.example","RequestMethod":"GET","RequestPath":"/a?b","RequestPort":"80",` +
	`"RequestProtocol":"HTTP/2.0","RequestScheme":"https","ServiceURL":{"Scheme":"http",` +
	`"Host":"10.0.1.15:3000","Path":""},"StartLocal":"2015-05-17T12:05:03.5+02:00",` +
	`"StartUTC":"2015-05-17T10:05:03.5Z","TLSVersion":"1.3","entryPointName":"web","level":"info",` +
	`"msg":"","time":"2015-05-17T10:05:04Z"}`

// cloudflareLine has the fields of
// https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/.
const cloudflareLine = `{"CacheCacheStatus":"dynamic","ClientASN":64496,"ClientIP":"2001:db8::1",` +
	`"ClientRequestHost":"h.example","ClientRequestMethod":"GET","ClientRequestPath":"/a",` +
	`"ClientRequestURI":"/a?b","EdgeEndTimestamp":"2015-05-17T10:05:04Z","EdgeResponseBytes":17,` +
	`"EdgeResponseStatus":200,"EdgeStartTimestamp":"2015-05-17T10:05:03Z",` +
	`"RayID":"3a6050bcbe121a87","RequestHeaders":{"x-forwarded-for":"192.0.2.7"}}`

const logfmtLine = `ts=2015-05-17T10:05:03Z level=info method=GET host=h.example path="/a?b=c d"` +
	` remote_addr=192.0.2.7:5678 user=eve status=200 bytes=17 duration=1.2ms agent="Mozilla/5.0 (X)"`

// albLine has the form of the example in
// docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html.
const albLine = `https 2015-05-17T10:05:03.186641Z app/my-lb/50dc6c495c0c9188 192.0.2.7:2817` +
	` 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://h.example:443/a?b HTTP/1.1"` +
	` "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:x:1:t/my/7` +
	` "Root=1-58337281-1d84f3d73c47ec4e58577259" "h.example" "arn:aws:acm:x:1:certificate/2" 1` +
	` 2015-05-17T10:05:02.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`

// envoyLine has the form of the example in
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage.
const envoyLine = `[2015-05-17T10:05:03.310Z] "POST /a/locations?b HTTP/2" 204 - 154 17 226 100` +
	` "192.0.2.7" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "h.example" "tcp://10.0.2.1:80"`

// istioLine has the form of the example in
// https://istio.io/latest/docs/tasks/observability/logs/access-log.
const istioLine = `[2015-05-17T10:05:03.373Z] "GET /status/418?a HTTP/1.1" 418 - via_upstream -` +
	` "-" 0 17 4 4 "192.0.2.7" "curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88"` +
	` "h.example:8000" "10.44.1.27:80" outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652` +
	` 10.0.45.184:8000 10.44.1.23:46520 - default`

// haproxyLine has the form of the example in
// https://docs.haproxy.org/dev/configuration.html#8.2.3.
const haproxyLine = `192.0.2.7:33317 [17/May/2015:10:05:03.655] http-in static/srv1` +
	` 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {h.example} {} "GET /a?b HTTP/1.1"`

// s3Line has the fields of https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html.
const s3Line = `79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be bucket` +
	` [17/May/2015:10:05:03 +0000] 192.0.2.7 arn:aws:iam::123456789012:user/eve 3E57427F3EXAMPLE` +
	` REST.GET.OBJECT a%2Bb "GET /bucket/a?b HTTP/1.1" 200 - 17 17 70 69 "-" "S3Console/0.4" -` +
	` s9lzHYrFp76ZVxRcpX9= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader s3.amazonaws.com TLSV1.2 - -`

// Lines of each format, by what is special about them.
func TestFormats(t *testing.T) {
	const stamp = `[17/May/2015:10:05:03 +0000]`
	const albEnd = ` "curl/7" - - arn "Root=1" "-" "-" 0`
	const envoyStamp = `[2015-05-17T10:05:03.000Z] `
	const envoyEnd = ` "id" "h.example" "10.0.2.1:80"`
	const proxyEnd = ` - - ---- 1/1/1/1/0 0/0 `
	for format, tests := range map[Format][]lineTest{
		Common: {
			{"usual", `1.2.3.4 - - ` + stamp + ` "GET /a?b HTTP/1.1" 200 17`,
				request{at, "1.2.3.4", "", "", "/a"}},
			{"ISO 8601", `1.2.3.4 - - [2015-05-17T12:05:03+02:00] "GET /a HTTP/1.1" 200 17`,
				request{at, "1.2.3.4", "", "", "/a"}},
			{"user like a time", `1.2.3.4 - ` + stamp + ` \"] ` + stamp + ` "GET / HTTP/1.1" 200 1`,
				request{at, "1.2.3.4", stamp + ` \"]`, "", "/"}},
			{"no client", `- - - ` + stamp + ` "GET / HTTP/1.1" - 1`, request{at, "", "", "", "/"}},
			{"spaces in the path", `1.2.3.4 - - ` + stamp + ` "GET /a b HTTP/1.1" 200 1`,
				request{at, "1.2.3.4", "", "", "/a b"}},
			{"TLS to a plain port", `1.2.3.4 - - ` + stamp + ` "\x16\x03\\" 400 226`,
				request{at, "1.2.3.4", "", "", ""}},
			{"request to a proxy", `1.2.3.4 - - ` + stamp + ` "GET http://h.example/p HTTP/1.1" 200 1`,
				request{at, "1.2.3.4", "", "h.example", "/p"}},
		},
		Combined: {
			{"usual", `2001:db8::1 id frank ` + stamp + ` "GET /a?b=c HTTP/1.1" 200 17 "-" "curl"`,
				request{at, "2001:db8::1", "frank", "", "/a"}},
			{"no size", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 408 - "-" "-"`,
				request{at, "1.2.3.4", "", "", "/"}},
			{"cut off in the agent", `1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 "-" "Moz`,
				request{at, "1.2.3.4", "", "", "/"}},
			{"HAProxy, option httplog clf", `1.2.3.4 - - ` + stamp + ` "GET /a HTTP/1.1" 200 17 "" ""` +
				` 33317 655 "http-in" "static" "srv1" 10 0 30 69 109 "----" 1 1 1 1 0 0 0 "" "" "" ""`,
				request{at, "1.2.3.4", "", "", "/a"}},
			{"the host in quotes behind the time", `1.2.3.4 - eve ` + stamp +
				` "h.example" "GET /a?b HTTP/1.1" 200 17 "-" "curl"`,
				request{at, "1.2.3.4", "eve", "h.example", "/a"}},
			{"the host in quotes in front", `"h.example" 1.2.3.4 - eve ` + stamp +
				` "GET /a?b HTTP/1.1" 200 17 "-" "curl"`,
				request{at, "1.2.3.4", "eve", "h.example", "/a"}},
		},
		"alb": {
			{"HTTPS", albLine,
				request{"2015-05-17T10:05:03.186641Z", "192.0.2.7", "", "h.example:443", "/a"}},
			{"IPv6 without brackets", `h2 ` + at + ` app/lb/1 2a02:db8:4538:1:bcf4:5264:e01c:f215:50718` +
				` 10.0.0.1:80 0.000 0.003 0.000 401 401 29 805 "GET https://h.example:443/a HTTP/2.0"` + albEnd,
				request{at, "2a02:db8:4538:1:bcf4:5264:e01c:f215", "", "h.example:443", "/a"}},
			{"IPv6 with brackets, no target", `http ` + at + ` app/lb/1 [::1]:99 - -1 -1 -1 503 - 172 370` +
				` "GET http://[::ffff:a9fe:a9fe]:443/ HTTP/1.1"` + albEnd,
				request{at, "[::1]", "", "[::ffff:a9fe:a9fe]:443", "/"}},
			{"invalid request", `http ` + at + ` app/lb/1 192.0.2.7:1 - -1 -1 -1 400 - 0 272` +
				` "- http://h.example:80- -"` + albEnd,
				request{at, "192.0.2.7", "", "h.example:80", ""}},
		},
		"uvicorn": {{"WebSocket", at + ` INFO:     192.0.2.7:1 - "WebSocket /ws?a" [accepted]`,
			request{at, "192.0.2.7", "", "", "/ws"}}},
		"s3": {{"usual", s3Line,
			request{at, "192.0.2.7", "arn:aws:iam::123456789012:user/eve", "", "/bucket/a"}}},
		"envoy": {
			{"usual", envoyLine,
				request{"2015-05-17T10:05:03.31Z", "192.0.2.7", "", "h.example", "/a/locations"}},
			{"list", envoyStamp + `"GET / HTTP/3" 0 UC,URX 0 17 2 - "192.0.2.7, 10.0.0.1,2001:db8::1"` +
				` "Mozilla/5.0 (X11; Linux)"` + envoyEnd,
				request{at, "192.0.2.7, 10.0.0.1,2001:db8::1", "", "h.example", "/"}},
			{"no values", envoyStamp + `"- - HTTP/1.1" 400 DPE 0 11 2 - "-" "-" "-" "-" "-"`,
				request{at, "", "", "", ""}},
		},
		"istio": {
			{"usual", istioLine, request{"2015-05-17T10:05:03.373Z", "10.44.1.23:46520", "",
				"h.example:8000", "/status/418"}},
			{"reasons", envoyStamp + `"GET / HTTP/2" 503 UF,URX upstream_reset{a,b} peer closed` +
				` "TLS error: 1:SSL" 0 91 2 - "-" "curl" "id" "h.example" "-" - - 10.0.45.184:8000` +
				` [2001:db8::1]:46520 h.example -`,
				request{at, "[2001:db8::1]:46520", "", "h.example", "/"}},
		},
		"haproxy": {
			{"usual", haproxyLine, request{"2015-05-17T10:05:03.655Z", "192.0.2.7", "", "", "/a"}},
			{"IPv6", `2001:db8::1:33317 [17/May/2015:10:05:03.000] web~ app/s1 0/0/0/1/+1 200 +17` +
				proxyEnd + `"GET https://h.example/a?b HTTP/2.0"`,
				request{at, "2001:db8::1", "", "h.example", "/a"}},
			{"no server", `192.0.2.7:59258 [17/May/2015:10:05:03.000] web~ web/<NOSRV> -1/-1/-1/-1/1` +
				` -1 0` + proxyEnd + `"GET /a"`, request{at, "192.0.2.7", "", "", "/a"}},
			{"HTTPS log", haproxyLine + ` 0/0/0/0/0 h.example/TLSv1.3/TLS_AES_256_GCM_SHA384`,
				request{"2015-05-17T10:05:03.655Z", "192.0.2.7", "", "", "/a"}},
			{"spaces in a captured agent", `unix:1 [17/May/2015:10:05:03.000] web~ app/s1 0/0/0/1/1 200` +
				` 17` + proxyEnd + `{h.example|Mozilla/5.0 (X11; #22x#22)} {} "GET /a#22 HTTP/1.1"`,
				request{at, "unix", "", "", "/a"}},
			{"cut off by syslog", `192.0.2.7:1 [17/May/2015:10:05:03.000] web~ app/s1 0/0/0/1/1 200 17` +
				proxyEnd + `"GET /aaaaa`, request{at, "192.0.2.7", "", "", "/aaaaa"}},
		},
		Logfmt: {
			{"usual", logfmtLine, request{at, "192.0.2.7:5678", "eve", "h.example", "/a"}},
			{"keys without a value", `msec=1431857103.123 debug ip= user=REDACTED remote_user=-` +
				` path=/   done`,
				request{"2015-05-17T10:05:03.123Z", "", "", "", "/"}},
			{"quoted quotes", `ts=1431857103 user="a\"b=\"c" path="/\\" time="17/May/2015:12:05:03 +0200"`,
				request{at, "", `a"b="c`, "", `/\`}},
			{"before 2000", `time=1970-01-01T00:01:21.223+00:00 path=/`,
				request{"1970-01-01T00:01:21.223Z", "", "", "", "/"}},
			{"a list and a request line", `ts=1431857103 ip=1.1.1.1 ip="192.0.2.7, 10.0.0.1"` +
				` request="GET /a HTTP/2"`, request{at, "192.0.2.7, 10.0.0.1", "", "", "/a"}},
		},
	} {
		checkLines(t, format, tests)
	}
}

func TestJSONLines(t *testing.T) {
	checkLines(t, JSON, []lineTest{
		{"Caddy", caddyLine, request{"2022-03-09T21:30:01.524102Z", "127.0.0.1", "eve",
			"localhost", "/a"}},
		{"nginx", nginxLine, request{at, "1.2.3.4", "", "h.example", "/x"}},
		{"Traefik", traefikLine, request{"2015-05-17T10:05:03.5Z", "192.0.2.7:58094", "", "h.example",
			"/a"}},
		{"a duration beside the time",
			`{"status":200,"time":0.25,"timestamp":1431857103,"ip":"192.0.2.7"}`,
			request{at, "192.0.2.7", "", "", ""}},
		{"Cloudflare", cloudflareLine, request{at, "2001:db8::1", "", "h.example", "/a"}},
		{"Google Cloud", `{"httpRequest":{"requestUrl":"https://h.example/a?b","responseSize":"17",` +
			`"remoteIp":"192.0.2.7"},"timestamp":"2015-05-17T10:05:03.25Z"}`,
			request{"2015-05-17T10:05:03.25Z", "192.0.2.7", "", "h.example", "/a"}},
		{"Envoy Gateway", `{"start_time":"2015-05-17T10:05:03Z","x-envoy-origin-path":"/a?b",` +
			`"bytes_sent":17,"x-forwarded-for":"192.0.2.8",":authority":"h.example",` +
			`"upstream_host":"-","downstream_remote_address":"192.0.2.7:62217"}`,
			request{at, "192.0.2.7:62217", "", "h.example", "/a"}},
		{"Kong", `{"started_at":1431857103000,"client_ip":"192.0.2.7","response":{"size":"17"},` +
			`"request":{"uri":"/a","url":"http://h.example:8000/a?b","headers":{"host":"h.example"}}}`,
			request{at, "192.0.2.7", "", "h.example:8000", "/a"}},
		{"AWS API Gateway", `{"requestId":"x","ip":"192.0.2.7","requestTime":` +
			`"17/May/2015:10:05:03 +0000","httpMethod":"GET","path":"/a","responseLength":"17"}`,
			request{at, "192.0.2.7", "", "", "/a"}},
		{"Elastic Common Schema", `{"@timestamp":"2015-05-17T10:05:03Z","source":{"ip":"192.0.2.7"},` +
			`"url":{"original":"/a?b","path":"/x","domain":"h.example"},` +
			`"http":{"response":{"body":{"bytes":17}}}}`,
			request{at, "192.0.2.7", "", "h.example", "/a"}},
		{"nginx without escape=json", `{"ts":1431857103,"uri":"/a\x22b","remote_addr":"::1"}`,
			request{at, "::1", "", "", `/a\x22b`}},
		{"nothing for an empty variable", `{"ts":1431857103,"status":200,"t": ,"ip":"::1","size":}`,
			request{at, "::1", "", "", ""}},
		{"escapes", `{"ts":1431857103,"status":200,"user":"a\"b\\\u00e9\/","uri":"/\u0026"}`,
			request{at, "", `a"b\é/`, "", "/&"}},
		{"missing values", `{"ts":1431857103,"status":200,"user_id":null,"remote_user":"-","user":"",` +
			`"ClientUsername":"u"}`, request{at, "", "u", "", ""}},
		{"array of addresses", `{"ts":1431857103,"status":200,"ip":["192.0.2.7", "10.0.0.1,10.0.0.2"]}`,
			request{at, "192.0.2.7,10.0.0.1,10.0.0.2", "", "", ""}},
		{"object where a text is expected",
			`{"ts":1431857103,"status":200,"user":{"id":1},"ip":[{"a":1}],"host":"h"}`,
			request{at, "", "", "h", ""}},
		{"names with dots", `{"@timestamp":"2015-05-17T10:05:03Z","source.ip":"192.0.2.7",` +
			`"url.original":"/a?b","stage":"ResponseComplete"}`, request{at, "192.0.2.7", "", "", "/a"}},
		{"pino", `{"level":30,"time":1431857103000,"pid":1,"hostname":"web","req":{"id":1,` +
			`"method":"GET","url":"/a?b","headers":{"host":"h.example"},` +
			`"remoteAddress":"::ffff:192.0.2.7"},` +
			`"res":{"statusCode":200,"headers":{"content-length":17}},"msg":"request completed"}`,
			request{at, "::ffff:192.0.2.7", "", "h.example", "/a"}},
		{"pino, aborted", `{"time":1431857103000,"req":{"url":"/a"},"responseTime":2,` +
			`"res":{"statusCode":null},"msg":"request aborted"}`, request{at, "", "", "", "/a"}},
		{"pino-http with quietReqLogger", `{"time":1431857103000,"reqId":1,"req":{"url":"/a"},` +
			`"res":{"statusCode":500},"err":{"type":"Error"},"responseTime":2}`,
			request{at, "", "", "", "/a"}},
		{"request line and path", `{"logger":"http.access","msec":1431857103.5,` +
			`"remote_addr":"192.0.2.7","request":"GET /a?b HTTP/1.1","uri":"/index.html"}`,
			request{"2015-05-17T10:05:03.5Z", "192.0.2.7", "", "", "/a"}},
		{"request of another name", `{"date":"17 May","time":"` + at + `","ip":"192.0.2.7",` +
			`"request":"3a60","uri":"/a"}`, request{at, "192.0.2.7", "", "", "/a"}},
		{"APISIX", `{"client_ip":"192.0.2.7","start_time":1431857103000,"route_id":"1","request":` +
			`{"uri":"/a?b","url":"http://h.example:9080/a?b","method":"GET",` +
			`"headers":{"host":"h.example"}},"response":{"status":200,"size":17}}`,
			request{at, "192.0.2.7", "", "h.example:9080", "/a"}},
	})
}

// Each line is malformed after a valid one, and the error says what it lacks.
func TestMalformedLines(t *testing.T) {
	for valid, tests := range map[string][]malformedTest{
		line("1.2.3.4"): {
			{`hello`, errOrigin.want},
			{`1.2.3.4 - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, errClient.want},
			{`[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, errOrigin.want},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] GET / HTTP/1.1 200 1`, errOrigin.want},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1\" 200 1`, errRequest.want},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1"`, errStatus.want},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "-" 408 - "-" "-"`, errConnection.Error()},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "" 400 0 "-" "-"`, errConnection.Error()},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 `, errSize.want},
			{`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1234567890123456789`,
				errSize.want},
		},
		caddyLine: {
			{`hello`, errObject.want},
			{`{"ts":1431857103,"ip":"a"}{"ts":1431857103,"ip":"b"}`, errJSON.want},
			{`{"ts":,"path":"/"}`, errNoTime.want},
			{`{"ip":"1.2.3.4","host":"h","user":"u","status":"up"}`, ErrMessage.Error()},
			{`{"ts":1431857103,"logger":"http.handlers.x","method":"GET","path":"/"}`, ErrMessage.Error()},
			{`{"ts":1431857103,"logger":"http.log.error.log0","request":{"uri":"/"}}`, ErrMessage.Error()},
			{`{"ts":"yesterday"}`, `time "yesterday": ` + errBadTime.want},
			{`{"ts":1e400}`, `time "1e400": ` + errBadTime.want},
			{`{"ts":` + strings.Repeat("9", 1000) + `}`, `time "` + strings.Repeat("9", excerpt) + `": `},
		},
		logfmtLine: {
			{`hello world ts=1431857103`, errPair.want},
			{`ts=1431857103 user="a`, errValue.want},
			{`ts=1431857103 uri=/a?b=c`, errValue.want},
		},
		haproxyLine: {
			{`192.0.2.7 [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 200 1 - "-"`,
				`want $peer_port before " ["`},
			{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 1/1/1/1/1 OK 1 - "-"`, `want $status before " "`},
			{`192.0.2.7:1 [17/May/2015:10:05:03.123] f f/<NOSRV> -1/-1/-1/-1/9999 408 212 - "<BADREQ>"`,
				errConnection.Error()},
		},
		envoyLine: {
			{`[2015-05-17 10:05:03.310][1][info][main] starting`, `want $time_iso8601 before "] \""`},
			{`[2015-05-17T10:05:03.310Z] "GET / HTTP/1.1" 200 - 0 1 2 3 "192.0.2.7" "curl"`,
				`want $http_user_agent before "\" \""`},
			{`[2015-05-17T10:05:03.310Z] "GET / HTTP/1.1" 200 - 0 1 2 3 "1.1.1.1" "a" "b" "c" "d" "e"`,
				`want the end before " \"e\""`},
			{`[2015-05-17T10:05:03.310Z] "- - -" 0 DC 0 0 2 - "-" "-" "-" "-" "10.0.0.1:80"`,
				errConnection.Error()},
		},
		albLine: {
			{`tls ` + at + ` app/lb/1 192.0.2.7:1`, `want $type before " "`},
		},
	} {
		for _, tt := range tests {
			got, bad, _ := read(t, strings.NewReader(valid+"\n"+tt.line), Schema{})
			if len(got) != 1 || len(bad) != 1 || !strings.HasPrefix(bad[0].Err.Error(), tt.want) &&
				!strings.HasSuffix(bad[0].Err.Error(), tt.want) {
				t.Errorf("%s: got %v, malformed %v; want %v", tt.line, got, bad, tt.want)
			}
		}
	}
}

// A message of a program is not a request, and not malformed.
func TestMessagesBetweenRequests(t *testing.T) {
	pino := func(more string) string {
		return `{"time":1431857103000,"req":{"method":"GET","url":"/"},` + more + "}\n"
	}
	for _, log := range []string{
		caddyLine + "\n" + `{"ts":1431857103,"logger":"pki.ca.local","path":"storage:pki/root.crt"}`,
		caddyLine + "\n" + `{"ts":1431857103,"logger":"admin.api","method":"POST","uri":"/load"}`,
		caddyLine + "\n" + `{"ts":1431857103,"logger":"token_bucket","msg":"limiter default: rule a` +
			` refused a request","client_ip":"127.0.0.10","method":"GET","path":"/p3"}`,
		logfmtLine + "\nts=1431857103 level=info msg=starting",
		caddyLine + "\n" + `{"ts":1431857103,"uri":"/","stage":"RequestReceived"}`, // of Kubernetes
		caddyLine + "\n" + `{"ts":1431857103,"uri":"/","category":"FrontDoorHealthProbeLog"}`,
		caddyLine + "\n" + `{"ts":1431857103,"uri":"/","properties":{"isReceivedFromClient":false}}`,
		caddyLine + "\n" + `{"ts":1431857103,"uri":"/","category":"","WorkerSubrequest":true}`,
		pino(`"msg":"incoming request"`) + `{"time":1431857103001,"res":{"statusCode":200}}`,
		pino(`"msg":"incoming request"`) + pino(`"res":{"statusCode":500},"err":{"type":"a"},"reqId":1`),
		pino(`"res":{"statusCode":500},"err":{"type":"a"}`) + pino(`"msg":"so"`), // of pino-http
		"#Fields: date time c-ip sc-status\n2015-05-17 10:05:03 192.0.2.7 200",
		`Started GET "/a" for 192.0.2.7 at 2015-05-17 10:05:03 +0000` + "\nCompleted 200 OK in 5ms",
	} {
		got, bad, _ := read(t, strings.NewReader(log), Schema{})
		if len(got) != 1 || len(bad) != 1 || !errors.Is(bad[0], ErrMessage) {
			t.Errorf("%s: got %v, malformed %v", log, got, bad)
		}
	}
}

// The fields of a format that names them can be named, and further ones are read.
func TestFieldsCanBeNamed(t *testing.T) {
	for _, tt := range []struct {
		schema             Schema
		log, fields, extra string
	}{
		{Schema{Names: map[string]string{"time": "when", "ip": "who.addr", "uri": "what", "user": "n"},
			Extra: []string{"request.headers.X-Api-Key", "level", "absent", "request.host"}},
			strings.Replace(caddyLine, `{`, `{"when":9,"who":{"addr":"5.6.7.8"},"what":"/w","n":3,`, 1),
			"{1970-01-01T00:00:09Z 5.6.7.8 3 localhost /w}", `["k1" "info" "" "localhost"]`},
		{Schema{Names: map[string]string{"status": "result"}},
			`{"ts":1431857103,"ip":"192.0.2.7","result":"ok"}`,
			"{2015-05-17T10:05:03Z 192.0.2.7   }", "[]"},
		{Schema{Names: map[string]string{"date": "date", "time": "time"}},
			`{"date":"2015-05-17","time":"10:05:03","c-ip":"192.0.2.7","uri":"/a"}`,
			"{2015-05-17T10:05:03Z 192.0.2.7   /a}", "[]"},
		{Schema{LogFormat: `$date $time $s_ip $request_uri $c_ip`,
			Names: map[string]string{"ip": "c_ip"}},
			"2015-05-17 10:05:03 10.0.0.1 /a 192.0.2.7", "{2015-05-17T10:05:03Z 192.0.2.7   /a}", "[]"},
	} {
		if err := tt.schema.Validate(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(t.Context(), "a.log", strings.NewReader(tt.log), tt.schema)
		var rec Record
		if err = errors.Join(err, r.Next(&rec)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(kept(&rec)); got != tt.fields || fmt.Sprintf("%q", rec.Fields) != tt.extra {
			t.Errorf("%s: got %s, extra %q", tt.log, got, rec.Fields)
		}
	}
	for _, names := range []map[string]string{{"ipp": "x"}, {"ip": ""}} {
		err := Schema{Names: names}.Validate()
		if err == nil || !strings.Contains(err.Error(),
			"date, time, ip, forwarded, user, host, method, uri, query, status, agent") {
			t.Errorf("%v: error %v does not list the names", names, err)
		}
	}
}
