package accesslog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// syslogPrefixes are of RFC 3164 (https://www.rfc-editor.org/rfc/rfc3164), RFC 5424
// (https://www.rfc-editor.org/rfc/rfc5424#section-6.5) and the file format of rsyslog
// (https://www.rsyslog.com/doc/configuration/templates.html).
var syslogPrefixes = []string{
	`May 17 10:05:03 host nginx: `,
	`May  7 10:05:03 host haproxy[14389]: `,
	`<134>May 17 10:05:03 haproxy[14389]: `,
	`<190>May 17 10:05:03 2001:db8::1 web/1[2]: `,
	`2015-05-17T10:05:03.5+00:00 host haproxy[14389]: `,
	`<34>1 2015-05-17T10:05:03.5Z host.example su 1 ID47 - ` + "\ufeff",
	`<134>1 2015-05-17T10:05:03.5+00:00 - haproxy 224482 - - `,
	`<165>1 2015-05-17T03:05:03.500-07:00 192.0.2.1 app 8710 - [a@1 b="c"][d e="\"]  [\\" f="] "] `,
}

// inEnvelopes returns a line in all envelopes. Each has the time 10:05:03.5 or no year.
func inEnvelopes(line string) (all []string) {
	text, _ := json.Marshal(line + "\n") // a string always can be
	for _, prefix := range syslogPrefixes {
		all = append(all, prefix+line)
	}
	return append(all,
		`2015-05-17T10:05:03.5Z stdout F `+line,
		`2015-05-17T12:05:03.500000000+02:00 stderr P `+line,
		`{"log":`+string(text)+`,"stream":"stdout","time":"2015-05-17T10:05:03.5Z"}`,
		`web-1  | `+line,
		`[pod/web-1/nginx] `+line,
		`app_web_1 | 2015-05-17T10:05:03.500000000Z `+line,
		`2015-05-17T10:05:03.500000000Z `+line)
}

func TestEnvelopes(t *testing.T) {
	for _, tt := range lines {
		want, _, wantFormat := read(t, strings.NewReader(tt.line), tt.schema)
		for _, line := range inEnvelopes(tt.line) {
			got, _, format := read(t, strings.NewReader(line), tt.schema)
			if len(got) != 1 || got[0] != want[0] || format != wantFormat {
				t.Errorf("%s: got %+v (%s), want %+v (%s)", line, got, format, want, wantFormat)
			}
		}
	}
}

// A line without a time has the time of its envelope.
func TestTimeOfTheEnvelope(t *testing.T) {
	const heroku = `at=info method=GET path="/a?b" host=h.example request_id=8601b555` +
		` fwd="192.0.2.7" dyno=web.1 connect=1ms service=18ms status=200 bytes=17 protocol=https`
	want := request{"2015-05-17T10:05:03.5Z", "192.0.2.7", "", "h.example", "/a"}
	for _, line := range append(inEnvelopes(heroku),
		`<158>1 2015-05-17T10:05:03.500000+00:00 host heroku router - `+heroku) {
		got, bad, format := read(t, strings.NewReader(line), Schema{})
		if !strings.Contains(line, "2015-05-17T") { // no year
			if len(got) != 0 || len(bad) != 1 || !errors.Is(bad[0], errNoTime) {
				t.Errorf("%s: got %v, malformed %v", line, got, bad)
			}
		} else if len(got) != 1 || got[0] != want || format != Logfmt {
			t.Errorf("%s: got %v (%s), malformed %v; want %+v", line, got, format, bad, want)
		}
	}
}

// The envelope is the one of the first lines, and messages in it do not decide the format.
func TestEnvelopeIsThatOfTheFile(t *testing.T) {
	for i, message := range inEnvelopes("starting worker process 29") {
		requests := inEnvelopes(line("192.0.2.7"))
		log := message + "\n" + requests[i] + "\n" + message + "\n" + requests[i] + "\n" +
			line("192.0.2.9")
		got, bad, format := read(t, strings.NewReader(log), Schema{})
		if len(got) != 2 || len(bad) != 3 || !errors.Is(bad[2], errNoEnvelope) || format != Common {
			t.Errorf("%s: got %v (%s), malformed %v", message, got, format, bad)
		}
		got, bad, _ = read(t, strings.NewReader(line("192.0.2.9")+"\n"+requests[i]), Schema{})
		if len(got) != 1 || len(bad) != 1 {
			t.Errorf("%s after a line without an envelope: got %v, malformed %v", requests[i], got, bad)
		}
	}
}

func TestNoEnvelopes(t *testing.T) {
	for _, text := range []string{
		"", "<", "<1", "<1>", "<1>1 ", "<1>1 2015-05-17T10:05:03Z h a p", "<1>1 - h a p m - x",
		"May 17 10:05:03 ",
		"May 17 10:05:03 h",
		"May 17 10:05:03 h t x: y", "Mai 17 10:05:03 h t: x", "May 17 10:05.03 h t: x",
		"2015-05-17 10:05:03 h t: x", "2015-05-17T10:05:03Z t:", "20150517-10:05:03.123 h t: x",
		`2015-05-17T10:05:03Z stdout F`, `2015-05-17T10:05:03Z stdout f x`,
		`2015-05-17T10:05:03Z stdin F x`, `17/May/2015 stdout F x`, `2015-05-17T10:05:03Z {"a": 1}`,
		"2015-05-17T10:05:03Z [pid: 7|app: 0]", "2015-05-17T10:05:03Z #Fields: time",
		`{"log":["x"]}`, `{"log":""}`, `{"log":"x"`, `{"time":"x"}`, "| x", "web |x", "web x | y",
	} {
		if e := envelopesOf([]byte(text), false); len(e) == 1 {
			t.Errorf("%q is in %s", text, e[0].name)
		}
	}
	// Common Log Format would take the prefix for a client and a user.
	for _, prefix := range inEnvelopes("")[:1] {
		line := prefix + `- [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`
		if got, bad, _ := read(t, strings.NewReader(line), Schema{}); len(got) > 0 || len(bad) != 1 {
			t.Errorf("%s: got %v, malformed %v", line, got, bad)
		}
	}
}
