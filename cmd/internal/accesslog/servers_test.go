package accesslog

import (
	"strings"
	"testing"
)

// The S3 line has the fields of
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html.
func TestLinesOfServers(t *testing.T) {
	const owner = `79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be`
	const s3 = owner + ` bucket [17/May/2015:10:05:03 +0000] 192.0.2.7 ` +
		`arn:aws:iam::123456789012:user/eve 3E57427F3EXAMPLE REST.GET.OBJECT a%2Bb ` +
		`"GET /bucket/a?b HTTP/1.1"` +
		` 200 - 17 17 70 69 "-" "S3Console/0.4" - s9lzHYrFp76ZVxRcpX9= SigV4 ` +
		`ECDHE-RSA-AES128-GCM-SHA256` +
		` AuthHeader bucket.s3.us-west-1.amazonaws.com TLSV1.2 - -`
	for format, tests := range map[Format][]lineTest{
		S3: {
			{"S3", s3, request{at, "192.0.2.7", "arn:aws:iam::123456789012:user/eve", "", "/bucket/a", 17}},
		},
		NPM: {
			{"proxied", `[17/May/2015:10:05:03 +0000] - 200 200 - GET https h.example "/a?b" ` +
				`[Client 192.0.2.7] [Length 17] [Gzip -] [Sent-to 10.0.0.2] "curl" "-"`,
				request{at, "192.0.2.7", "", "h.example", "/a", 17}},
			{"standard", `[17/May/2015:10:05:03 +0000] 404 - GET http h.example "/a" ` +
				`[Client 2001:db8::7] [Length 17] [Gzip 1.5] "curl" "-"`,
				request{at, "2001:db8::7", "", "h.example", "/a", 17}},
		},
		APISIX: {
			{"APISIX", `192.0.2.7 - - [17/May/2015:10:05:03 +0000] h.example:9080 "GET /a?b HTTP/1.1"` +
				` 200 17 0.003 "-" "curl" 10.0.0.2:80 200 0.002 "http://h.example"`,
				request{at, "192.0.2.7", "", "h.example:9080", "/a", 17}},
		},
		UWSGI: {
			{"uWSGI", `[pid: 5501|app: 0|req: 2/6] 192.0.2.7 () {40 vars in 625 bytes}` +
				` [Sun May 17 10:05:03 2015] GET /a?b => generated 17 bytes in 1 msecs (HTTP/1.1 200)` +
				` 2 headers in 79 bytes (1 switches on core 0)`,
				request{at, "192.0.2.7", "", "", "/a", 17}},
			{"a user and a day below 10", `[pid: 5501|app: -|req: -/-] ::1 (eve) {4 vars in 62 bytes}` +
				` [Thu May  7 10:05:03 2015] GET /a => generated 0 bytes in 1 msecs (HTTP/1.1 200) 2 headers`,
				request{"2015-05-07T10:05:03Z", "::1", "eve", "", "/a", 0}},
		},
		Squid: {
			{"Squid", `1431857103.123     52 192.0.2.7 TCP_MISS/200 17 GET http://h.example/a?b -` +
				` HIER_DIRECT/10.0.0.1 text/html`,
				request{"2015-05-17T10:05:03.123Z", "192.0.2.7", "", "h.example", "/a", 17}},
			{"a tunnel", `1431857103.123 600000 192.0.2.7 TCP_TUNNEL/200 17 CONNECT h.example:443 eve` +
				` HIER_DIRECT/10.0.0.1 -`,
				request{"2015-05-17T10:05:03.123Z", "192.0.2.7", "eve", "", "h.example:443", 17}},
		},
		Gin: {
			{"Gin", `[GIN] 2015/05/17 - 10:05:03 | 200 |     123.4µs |       192.0.2.7 | GET      "/a?b"`,
				request{at, "192.0.2.7", "", "", "/a", Unknown}},
			{"without quotes", `[GIN] 2015/05/17 - 10:05:03 | 404 | 1.2ms | 2001:db8::7 | POST /a`,
				request{at, "2001:db8::7", "", "", "/a", Unknown}},
		},
		W3C: {
			{"Zeek", "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n" +
				"#path\thttp\n" +
				"#open\t2015-05-17-10-00-00\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tmethod\thost\turi" +
				"\tuser_agent\tresponse_body_len\n#types\ttime\tstring\taddr\tport\tstring\tstring\tstring" +
				"\tstring\tcount\n1431857103.123000\tC1\t192.0.2.7\t4711\tGET\th.example\t/a?b\ta b\t17\n" +
				"#close\t2015-05-17-11-00-00",
				request{"2015-05-17T10:05:03.123Z", "192.0.2.7", "", "h.example", "/a", 17}},
		},
		JSON: {
			{"Zeek", `{"ts":1431857103.123,"uid":"C1","id.orig_h":"192.0.2.7","id.orig_p":4711,` +
				`"method":"GET","host":"h.example","uri":"/a?b","response_body_len":17}`,
				request{"2015-05-17T10:05:03.123Z", "192.0.2.7", "", "h.example", "/a", 17}},
			{"names with dots", `{"@timestamp":"2015-05-17T10:05:03Z","source.ip":"192.0.2.7",` +
				`"url.original":"/a?b"}`, request{at, "192.0.2.7", "", "", "/a", Unknown}},
			{"Azure Front Door", `{"time":"2015-05-17T10:05:03.0000000Z","category":"FrontDoorAccessLog",` +
				`"properties":{"httpMethod":"GET","requestUri":"https://h.example:443/a?b","clientIp":` +
				`"203.0.113.1","socketIp":"192.0.2.7","responseBytes":"17","hostName":"h.example"}}`,
				request{at, "192.0.2.7", "", "h.example", "/a", 17}},
			{"pino", `{"level":30,"time":1431857103000,"pid":1,"hostname":"web","req":{"id":1,` +
				`"method":"GET","url":"/a?b","headers":{"host":"h.example"},` +
				`"remoteAddress":"::ffff:192.0.2.7"},` +
				`"res":{"statusCode":200,"headers":{"content-length":17}},"msg":"request completed"}`,
				request{at, "::ffff:192.0.2.7", "", "h.example", "/a", 17}},
			{"APISIX", `{"client_ip":"192.0.2.7","start_time":1431857103000,"route_id":"1","request":` +
				`{"uri":"/a?b","url":"http://h.example:9080/a?b","method":"GET",` +
				`"headers":{"host":"h.example"}},"response":{"status":200,"size":17}}`,
				request{at, "192.0.2.7", "", "h.example:9080", "/a", 17}},
		},
	} {
		checkLines(t, format, tests)
	}
}

// A line that is cut off, or of which a part is something else, is malformed.
func TestMalformedLinesOfServers(t *testing.T) {
	for _, tt := range []struct {
		line string
		want error
	}{
		{`[pid: 1|app: 0|req: 1/1] ::1 () {4 vars in 6 bytes} [Sun May 17 10:05 2015]` +
			` GET / => generated 1 bytes`, errUWSGI},
		{`[pid: 1|app: 0|req: 1/1] ::1 () {4 vars in 6 bytes} [Sun May 17 10:05:03 2015] GET /`,
			errUWSGI},
		{`1431857103.123 52 192.0.2.7 TCP_MISS 17 GET / - x`, errSquid},
		{`1431857103.123 52 192.0.2.7 TCP_MISS/200 17 GET`, errSquid},
		{`[GIN] 2015/05/17 - 10:05 | 200 | 1ms | 192.0.2.7 | GET "/a"`, errGin},
		{`[GIN] 2015/05/17 - 10:05:03 | 200 | 1ms | <b> | GET "/a"`, errGin},
	} {
		valid := map[error]string{
			errUWSGI: `[pid: 1|app: 0|req: 1/1] ::1 () {4 vars in 6 bytes} [Sun May 17 10:05:03 2015]` +
				` GET / => generated 1 bytes`,
			errSquid: `1431857103.123 52 192.0.2.7 TCP_MISS/200 17 GET / - x`,
			errGin:   `[GIN] 2015/05/17 - 10:05:03 | 200 | 1ms | ::1 | GET "/a"`,
		}[tt.want]
		checkMalformed(t, valid, []malformedTest{{tt.line, tt.want}})
	}
}

// A pattern with a strict field is not taken for another one, and most of the first hundred lines
// decide and not the first one.
func TestFormatsThatLookAlike(t *testing.T) {
	const apisix = ` - - [17/May/2015:10:05:03 +0000] 198.51.100.1 "GET /a?b HTTP/1.1"` +
		` 200 17 0.003 "-" "curl" 10.0.0.2:80 200 0.002 "http://h.example"`
	want := request{at, "192.0.2.7", "", "198.51.100.1", "/a", 17}
	got, bad, format := read(t, strings.NewReader("192.0.2.7"+apisix+"\n192.0.2.7"+apisix), Schema{})
	if len(bad) > 0 || format != APISIX || len(got) != 2 || got[0] != want {
		t.Errorf("%s: %+v, malformed %v", format, got, bad)
	}
	const combined = `192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 17`
	log := `{"time":"2015-05-17T10:05:03Z","ip":"10.0.0.1","msg":"started"}` + "\n" +
		strings.Repeat(combined+"\n", 3)
	got, bad, format = read(t, strings.NewReader(log), Schema{})
	if format != Common || len(got) != 3 || len(bad) != 1 {
		t.Errorf("%s: %+v, malformed %v", format, got, bad)
	}
}
