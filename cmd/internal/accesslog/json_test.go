package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const caddyLine = `{"level":"info","ts":1646861401.5241024,"logger":"http.log.access",` +
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

func TestJSONLines(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       request
	}{
		{"Caddy", caddyLine, request{"2022-03-09T21:30:01.5241024Z", "127.0.0.1", "eve",
			"localhost", "/a", 10900}},
		{"nginx", nginxLine, request{at, "1.2.3.4", "", "h.example", "/x", 17}},
		{"Traefik", traefikLine, request{"2015-05-17T10:05:03.5Z", "192.0.2.7:58094", "", "h.example",
			"/a", 17}},
		{"Traefik without StartUTC", strings.Replace(traefikLine, "StartUTC", "X", 1),
			request{"2015-05-17T10:05:03.5Z", "192.0.2.7:58094", "", "h.example", "/a", 17}},
		{"a duration beside the time", `{"time":0.25,"timestamp":1431857103,"ip":"192.0.2.7"}`,
			request{at, "192.0.2.7", "", "", "", Unknown}},
		{"Cloudflare", cloudflareLine, request{at, "2001:db8::1", "", "h.example", "/a", 17}},
		{"Cloudflare, unix", strings.Replace(cloudflareLine, `"2015-05-17T10:05:03Z"`,
			`1431857103`, 1), request{at, "2001:db8::1", "", "h.example", "/a", 17}},
		{"Cloudflare, unixnano", strings.Replace(cloudflareLine, `"2015-05-17T10:05:03Z"`,
			`1431857103250000000`, 1),
			request{"2015-05-17T10:05:03.25Z", "2001:db8::1", "", "h.example", "/a", 17}},
		{"Envoy", `{"start_time":"2015-05-17T10:05:03.25Z","authority":"h.example","bytes_sent":17,` +
			`"downstream_remote_address":"[::1]:99","path":"/a?b","x_forwarded_for":"192.0.2.7"}`,
			request{"2015-05-17T10:05:03.25Z", "[::1]:99", "", "h.example", "/a", 17}},
		{"Google Cloud", `{"httpRequest":{"requestUrl":"https://h.example/a?b","responseSize":"17",` +
			`"remoteIp":"192.0.2.7"},"timestamp":"2015-05-17T10:05:03.25Z"}`,
			request{"2015-05-17T10:05:03.25Z", "192.0.2.7", "", "h.example", "/a", 17}},
		{"Envoy Gateway", `{"start_time":"2015-05-17T10:05:03Z","x-envoy-origin-path":"/a?b",` +
			`"bytes_sent":17,"x-forwarded-for":"192.0.2.8",":authority":"h.example",` +
			`"upstream_host":"-","downstream_remote_address":"192.0.2.7:62217"}`,
			request{at, "192.0.2.7:62217", "", "h.example", "/a", 17}},
		{"Kong", `{"started_at":1431857103000,"client_ip":"192.0.2.7","response":{"size":"17"},` +
			`"request":{"uri":"/a","url":"http://h.example:8000/a?b","headers":{"host":"h.example"}}}`,
			request{at, "192.0.2.7", "", "h.example:8000", "/a", 17}},
		{"AWS API Gateway", `{"requestId":"x","ip":"192.0.2.7","requestTime":` +
			`"17/May/2015:10:05:03 +0000","httpMethod":"GET","path":"/a","responseLength":"17"}`,
			request{at, "192.0.2.7", "", "", "/a", 17}},
		{"AWS WAF", `{"timestamp":1431857103000,"httpRequest":{"clientIp":"192.0.2.7","uri":"/a",` +
			`"headers":[{"name":"Host","value":"h.example"}],"args":"b"}}`,
			request{at, "192.0.2.7", "", "", "/a", Unknown}},
		{"Elastic Common Schema", `{"@timestamp":"2015-05-17T10:05:03Z","source":{"ip":"192.0.2.7"},` +
			`"url":{"original":"/a?b","path":"/x","domain":"h.example"},` +
			`"http":{"response":{"body":{"bytes":17}}}}`,
			request{at, "192.0.2.7", "", "h.example", "/a", 17}},
		{"Echo", `{"time":"2015-05-17T10:05:03Z","remote_ip":"::1","host":"h.example","uri":"/a",` +
			`"bytes_in":1,"bytes_out":17}`, request{at, "::1", "", "h.example", "/a", 17}},
		{"milliseconds", `{"ts":1431857103123,"ip":"::1"}`,
			request{"2015-05-17T10:05:03.123Z", "::1", "", "", "", Unknown}},
		{"nginx $msec", `{"msec":"1431857103.123","uri":"/"}`,
			request{"2015-05-17T10:05:03.123Z", "", "", "", "/", Unknown}},
		{"time as in CLF", `{"time_local":"17/May/2015:10:05:03 +0000","uri":"/"}`,
			request{at, "", "", "", "/", Unknown}},
		{"nginx without escape=json", `{"ts":1431857103,"uri":"/a\x22b","remote_addr":"::1"}`,
			request{at, "::1", "", "", `/a\x22b`, Unknown}},
		{"nothing for an empty variable", `{"ts":1431857103,"t": ,"ip":"::1","size":}`,
			request{at, "::1", "", "", "", Unknown}},
		{"white space", " { \"ts\" : 1431857103 ,\t\"ip\" : \"a\" } \r\n",
			request{at, "a", "", "", "", Unknown}},
		{"escapes", `{"ts":1431857103,"user":"a\"b\\\u00e9\/","uri":"/\u0026"}`,
			request{at, "", `a"b\é/`, "", "/&", Unknown}},
		{"null and dash are missing values",
			`{"ts":1431857103,"user_id":null,"remote_user":"-","user":"u"}`,
			request{at, "", "u", "", "", Unknown}},
		{"an empty text is a missing value", `{"ts":1431857103,"user_id":"","remote_user":"u"}`,
			request{at, "", "u", "", "", Unknown}},
		{"size is not a number", `{"ts":1431857103,"ip":"::1","size":"big"}`,
			request{at, "::1", "", "", "", Unknown}},
		{"brackets in strings", `{"x":{"a":"}]\"}"},"y":["]",{"z":"["}],"ts":1431857103,"ip":"a"}`,
			request{at, "a", "", "", "", Unknown}},
		{"list instead of a peer", `{"ts":1431857103,"ip":"192.0.2.7, 10.0.0.1"}`,
			request{at, "192.0.2.7, 10.0.0.1", "", "", "", Unknown}},
		{"no peer but X-Forwarded-For", `{"ts":1431857103,"http_x_forwarded_for":"192.0.2.7"}`,
			request{at, "192.0.2.7", "", "", "", Unknown}},
		{"Caddy's client without a peer", `{"ts":1431857103,"request":{"client_ip":"192.0.2.7"}}`,
			request{at, "192.0.2.7", "", "", "", Unknown}},
		{"array of addresses", `{"ts":1431857103,"ip":["192.0.2.7", "10.0.0.1,10.0.0.2"]}`,
			request{at, "192.0.2.7,10.0.0.1,10.0.0.2", "", "", "", Unknown}},
		{"object where a text is expected", `{"ts":1431857103,"user":{"id":1},"ip":[{"a":1}],` +
			`"host":"h"}`, request{at, "", "", "h", "", Unknown}},
	} {
		got, format := one(t, tt.line)
		if got != tt.want || format != JSON {
			t.Errorf("%s: got %+v (%s), want %+v", tt.name, got, format, tt.want)
		}
	}
}

func TestMalformedJSONLines(t *testing.T) {
	for _, tt := range []struct {
		line string
		want error
	}{
		{`{`, errJSON},
		{`{"ts":1431857103`, errJSON},
		{`{"ts":1431857103,}`, errJSON},
		{`{"ts":1431857103} x`, errJSON},
		{`{"ts" 1431857103}`, errJSON},
		{`{ts:1431857103}`, errJSON},
		{`{"a":{"b":1},"c":["x"}`, errJSON},
		{`{"a":"x}`, errJSON},
		{`{"ip":"1.2.3.4"}`, errNoTime},
		{`{"ts":null,"time":"-","ip":"1.2.3.4"}`, errNoTime},
		{`{"ts":"","ip":"1.2.3.4"}`, errNoTime},
		{`{"ts":,"ip":"1.2.3.4"}`, errNoTime},
		{`{"ts":1431857103}`, errNoPart},
		{`{"ts":1431857103,"msg":"starting","user":"-","size":1}`, errNoPart},
		{`{"msg":"starting"}`, errNoPart},
		{`{"ts":"yesterday"}`, errBadTime},
		{`{"ts":-5}`, errBadTime},
		{`{"ts":1e400}`, errBadTime},
		{`{"ts":true}`, errBadTime},
		{`{"ts":"2015-05-17T10:05:03"}`, errBadTime}, // without a zone
		{`{"ts":"2015-13-17T10:05:03Z"}`, errBadTime},
	} {
		got, bad, _ := read(t, strings.NewReader(tt.line), Schema{})
		if len(got) != 0 || len(bad) != 1 || !errors.Is(bad[0], tt.want) {
			t.Errorf("%s: got %v, malformed %v; want %v", tt.line, got, bad, tt.want)
		}
	}
}

func TestUnusableTimeIsShown(t *testing.T) {
	long := strings.Repeat("9", 1000)
	for value, want := range map[string]string{
		`-5`: `time "-5": want epoch`, `"now"`: `time "now": want epoch`,
		long: `time "` + long[:excerpt] + `": want epoch`,
	} {
		_, bad, _ := read(t, strings.NewReader(`{"ts":`+value+`}`), Schema{})
		if len(bad) != 1 || !strings.HasPrefix(bad[0].Err.Error(), want) {
			t.Errorf("%s: malformed %v, want %q", value, bad, want)
		}
	}
}

func TestJSONFieldsCanBeNamed(t *testing.T) {
	s := Schema{
		Names: map[string]string{"time": "when", "ip": "who.addr", "uri": "what", "size": "n"},
		Extra: []string{"request.headers.X-Api-Key", "level", "absent", "request.host"},
	}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	line := strings.Replace(caddyLine, `{`, `{"when":1431857103,"who":{"addr":"5.6.7.8"},`+
		`"what":"/w","n":3,`, 1)
	d, err := newDetector(s)
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if err := d.parse([]byte(line), &rec); err != nil {
		t.Fatal(err)
	}
	if got, want := kept(&rec), (request{at, "5.6.7.8", "eve", "localhost", "/w", 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := fmt.Sprintf("%q", rec.Fields); got != `["k1" "info" "" "localhost"]` {
		t.Errorf("extra fields: %s", got)
	}
}

func TestSchemaNamesMustBeKnown(t *testing.T) {
	for _, names := range []map[string]string{{"ipp": "x"}, {"ip": ""}} {
		err := Schema{Names: names}.Validate()
		if err == nil || !strings.Contains(err.Error(), "time, ip, forwarded, user, host, uri, size") {
			t.Errorf("%v: error %v does not list the names", names, err)
		}
	}
}

// Hostile nesting must not cost a stack frame each.
func TestDeepNestingIsSkipped(t *testing.T) {
	deep := strings.Repeat(`[`, 400_000) + strings.Repeat(`]`, 400_000)
	got, _ := one(t, `{"user":`+deep+`,"x":`+`{"y":1},"ts":1431857103,"ip":"a"}`)
	if want := (request{at, "a", "", "", "", Unknown}); got != want {
		t.Errorf("got %+v", got)
	}
}
