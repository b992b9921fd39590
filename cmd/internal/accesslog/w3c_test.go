package accesslog

import (
	"fmt"
	"strings"
	"testing"
)

// The columns that IIS writes by default, from
// https://learn.microsoft.com/en-us/windows/win32/http/w3c-logging, and X-Forwarded-For.
const (
	iisFields = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n" +
		"#Date: 2015-05-17 10:00:00\n" +
		"#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip" +
		" cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status sc-bytes time-taken" +
		" X-Forwarded-For\n"
	iisLine = "2015-05-17 10:05:03 10.0.0.1 GET /a.aspx b=c 443 CORP\\eve 192.0.2.7" +
		" Mozilla/5.0+(Windows+NT+10.0) - 200 0 0 17 15 -"
)

// The columns of CloudFront, from
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html.
const (
	cloudFrontFields = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method" +
		" cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie)" +
		" x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken" +
		" x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version" +
		" fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type" +
		" sc-content-type sc-content-len sc-range-start sc-range-end\n"
	cloudFrontLine = "2015-05-17\t10:05:03\tLAX1\t17\t192.0.2.7\tGET\td1.cloudfront.net\t/a%20b\t200" +
		"\t-\tMozilla/4.0%20(compatible)\ta=b&c=d\t-\tHit\tSOX4xwn4XV6Q4==\th.example\thttps\t23" +
		"\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit" +
		"\ttext/html\t78\t-\t-"
)

func TestW3CLines(t *testing.T) {
	forwarded := strings.Replace(cloudFrontLine, "0.001\t-", "0.001\t2001:db8::1", 1)
	for _, tt := range []struct {
		name, log string
		want      []request
	}{
		{"IIS", iisFields + iisLine,
			[]request{{at, "192.0.2.7", `CORP\eve`, "", "/a.aspx", 17}}},
		{"IIS, IPv6 and no values", iisFields +
			"2015-05-17 10:05:03 10.0.0.1 - - - 443 - fe80::1%4 - - 400 0 0 - 15 -",
			[]request{{at, "fe80::1%4", "", "", "", Unknown}}},
		{"IIS, a tab in the agent", iisFields + strings.Replace(iisLine, "+(", "\t(", 1),
			[]request{{at, "192.0.2.7", `CORP\eve`, "", "/a.aspx", 17}}},
		{"CloudFront", cloudFrontFields + cloudFrontLine + "\n" + cloudFrontLine + "\t",
			[]request{{at, "192.0.2.7", "", "h.example", "/a%20b", 17},
				{at, "192.0.2.7", "", "h.example", "/a%20b", 17}}},
		{"CloudFront, IPv6", cloudFrontFields + strings.Replace(forwarded, "192.0.2.7",
			"2001:0db8:85a3:0000:0000:8a2e:0370:7334", 1),
			[]request{{at, "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "", "h.example", "/a%20b", 17}}},
		{"other columns later", "#Fields: time date c-ip\n10:05:03 2015-05-17 a\n" +
			"#Fields: date time c-ip cs-host\n2015-05-17 10:05:03.25 b h.example",
			[]request{{at, "a", "", "", "", Unknown},
				{"2015-05-17T10:05:03.25Z", "b", "", "h.example", "", Unknown}}},
		{"quotes, as Imperva writes", "#Fields: date time c-ip cs(User-Agent) cs-uri sc-bytes s-xff\n" +
			`"2015-05-17" "10:05:03" "192.0.2.7" "Mozilla/5.0 (a b c)" "/a" "17" "-"`,
			[]request{{at, "192.0.2.7", "", "", "/a", 17}}},
		{"quotes in some columns", "#Fields: date time c-ip cs(User-Agent) cs-uri-stem sc-bytes\n" +
			`2015-05-17 10:05:03 192.0.2.7 "a b" /a 17` + "\n" +
			`2015-05-17 10:05:03 192.0.2.7 "a+b /a 17`,
			[]request{{at, "192.0.2.7", "", "", "/a", 17}, {at, "192.0.2.7", "", "", "/a", 17}}},
		{"an empty column in quotes", "#Fields: date time c-ip cs-username sc-bytes\n" +
			`2015-05-17 10:05:03 192.0.2.7 "" 17` + "\n" + `2015-05-17 10:05:03 "192.0.2.7"  "" 17`,
			[]request{{at, "192.0.2.7", `""`, "", "", 17}, {at, "192.0.2.7", "", "", "", 17}}},
		{"padded", "#Fields: date time c-ip cs-uri-stem sc-bytes\n" +
			"2015-05-17 10:05:03   192.0.2.7    /a    17",
			[]request{{at, "192.0.2.7", "", "", "/a", 17}}},
		{"local time", "#Fields: date-local time-local c-ip sc-bytes\n" +
			"2015-05-17 10:05:03.000 192.0.2.7 17", []request{{at, "192.0.2.7", "", "", "", 17}}},
		{"local time beside UTC", "#Fields: date-local time-local date time c-ip\n" +
			"2015-05-17 12:05:03 2015-05-17 10:05:03 192.0.2.7",
			[]request{{at, "192.0.2.7", "", "", "", Unknown}}},
		{"capitals", "#Fields: Date Time C-IP CS(Host)\n2015-05-17 10:05:03 a H.example",
			[]request{{at, "a", "", "H.example", "", Unknown}}},
		{"1000 columns", "#Fields: date time" + strings.Repeat(" a", 998) + "\n2015-05-17 10:05:03" +
			strings.Repeat(" -", 998), []request{{at, "", "", "", "", Unknown}}},
		{"carriage returns", strings.ReplaceAll(iisFields+iisLine+"\n", "\n", "\r\n"),
			[]request{{at, "192.0.2.7", `CORP\eve`, "", "/a.aspx", 17}}},
	} {
		got, bad, format := read(t, strings.NewReader(tt.log), Schema{})
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || len(bad) != 0 || format != W3C {
			t.Errorf("%s: got %+v (%s), malformed %v; want %+v", tt.name, got, format, bad, tt.want)
		}
	}
}

func TestMalformedW3CLines(t *testing.T) {
	const begin = "#Fields: date time c-ip\n2015-05-17 10:05:03 192.0.2.7\n"
	checkMalformed(t, strings.TrimSuffix(begin, "\n"), []malformedTest{
		{"2015-05-17 10:05:03", errColumns},
		{"2015-05-17 10:05:03 192.0.2.7 GET", errColumns},
		{"2015-05-17 10:05:03\t192.0.2.7", errColumns},
		{"2015-02-29 10:05:03 192.0.2.7", errDateTime},
		{"2015-05-17 10:05 192.0.2.7", errDateTime},
		{"2015-05-17 10:05:03.x 192.0.2.7", errDateTime},
		{"- - 192.0.2.7", errDateTime},
		{"# comment", errColumns},
		{"#: comment", errColumns},
		{"#Fields: time c-ip\n10:05:03 192.0.2.7", errFields},
		{"#Fields: date time" + strings.Repeat(" a", maxColumns) + "\n2015-05-17 10:05:03", errFields},
		{"#Fields:\n2015-05-17 10:05:03 192.0.2.7", errFields},
	})
}

// Names and extra fields work as in JSON. Lists of addresses have no encoded spaces.
func TestW3CColumnsCanBeNamed(t *testing.T) {
	s := Schema{
		Names:     map[string]string{"ip": "X-Real-IP", "time": "timestamp(ms)"},
		Extra:     []string{"cs(X-Api-Key)", "time-taken"},
		Forwarded: true,
	}
	const log = "#Fields: timestamp(ms) c-ip x-real-ip cs(X-Api-Key) time-taken x-forwarded-for\n" +
		"1431857103250 10.0.0.1 192.0.2.6,+192.0.2.7 k1 15 192.0.2.8,%20fe80::1%20"
	r, err := NewReader(t.Context(), "a.log", strings.NewReader(log), s)
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if err := r.Next(&rec); err != nil {
		t.Fatal(err)
	}
	want := request{"2015-05-17T10:05:03.25Z", "192.0.2.6,192.0.2.7", "", "", "", Unknown}
	if got := kept(&rec); got != want || string(rec.Forwarded) != "192.0.2.8,fe80::1%20" {
		t.Errorf("got %+v, forwarded %q; want %+v", got, rec.Forwarded, want)
	}
	if got := fmt.Sprintf("%q", rec.Fields); got != `["k1" "15"]` {
		t.Errorf("extra fields: %s", got)
	}
}
