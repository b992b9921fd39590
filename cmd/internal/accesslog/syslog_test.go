package accesslog

import (
	"strings"
	"testing"
)

// Prefixes of RFC 3164 (https://www.rfc-editor.org/rfc/rfc3164), RFC 5424
// (https://www.rfc-editor.org/rfc/rfc5424#section-6.5) and the file format of rsyslog
// (https://www.rsyslog.com/doc/configuration/templates.html).
var syslogPrefixes = []string{
	`May 17 10:05:03 host nginx: `,
	`May  7 10:05:03 host haproxy[14389]: `,
	`<134>May 17 10:05:03 haproxy[14389]: `,
	`<190>May 17 10:05:03 2001:db8::1 web/1[2]: `,
	`2015-05-17T10:05:03.123456+02:00 host haproxy[14389]: `,
	`<34>1 2015-05-17T10:05:03.123Z host.example su 1 ID47 - ` + byteOrderMark,
	`<134>1 2015-05-17T10:05:03+00:00 - haproxy 224482 - - `,
	`<165>1 2015-05-17T10:05:03.000003-07:00 192.0.2.1 app 8710 - [a@1 b="c"][d e="\"]  [\\" f="] "] `,
}

func TestSyslogPrefixes(t *testing.T) {
	common := line("192.0.2.7")
	for _, prefix := range syslogPrefixes {
		for _, tt := range []struct {
			line   string
			format Format
		}{
			{common, Common}, {haproxyLine, HAProxy}, {caddyLine, JSON}, {albLine, ALB},
			{envoyLine, Envoy}, {logfmtLine, Logfmt},
		} {
			want, _ := one(t, tt.line)
			got, format := one(t, prefix+tt.line)
			if got != want || format != tt.format {
				t.Errorf("%s%s: got %+v (%s), want %+v", prefix, tt.line, got, format, want)
			}
		}
	}
}

// The first valid line decides whether all lines have a prefix.
func TestSyslogPrefixIsThatOfTheFile(t *testing.T) {
	prefix := syslogPrefixes[0]
	log := prefix + "Starting.\n" + prefix + line("a") + "\n" + line("b") + "\n" + prefix +
		line("c") + "\n" + prefix + "Stopping."
	got, bad, format := read(t, strings.NewReader(log), Schema{})
	if ips := strings.Join(clients(got), " "); ips != "a c" || len(bad) != 3 || format != Common {
		t.Errorf("got %s (%s), malformed %v", ips, format, bad)
	}
	log = line("a") + "\n" + prefix + haproxyLine
	got, bad, _ = read(t, strings.NewReader(log), Schema{})
	if ips := strings.Join(clients(got), " "); ips != "a" || len(bad) != 1 {
		t.Errorf("got %s, malformed %v", ips, bad)
	}
}

func TestNoSyslogPrefixes(t *testing.T) {
	for _, text := range []string{
		"", "<", "<1", "<>May 17 10:05:03 h t: x", "<1>", "<1>1 ", "<1>1 2015-05-17T10:05:03Z h a p",
		"<1>1 - h a p m - x", "<1>1 2015-05-17T10:05:03Z h a p m ",
		`<1>1 2015-05-17T10:05:03Z h a p m [a b="] x`, "<1>1 2015-05-17T10:05:03Z h a p m [a]",
		"May 17 10:05:03 ", "May 17 10:05:03 h", "May 17 10:05:03 h t x: y", "Mai 17 10:05:03 h t: x",
		"May 17 10:05.03 h t: x", "2015-05-17 10:05:03 h t: x", "2015-05-17T10:05:03Z t:",
		"2015-05-17T10:05:03", "a-line-that-is-not-a-time h t: x", "20150517-10:05:03.123 h t: x",
	} {
		if rest, _, ok := cutSyslog([]byte(text)); ok {
			t.Errorf("%q has a prefix before %q", text, rest)
		}
	}
}
