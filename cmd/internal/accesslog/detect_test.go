package accesslog

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// noFormat reads a log without a valid line and returns its error.
func noFormat(t *testing.T, log string, s Schema) string {
	t.Helper()
	r, err := NewReader(t.Context(), "a.log", strings.NewReader(log), s)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var rec Record
		var bad *LineError
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			return r.NoFormat().Error()
		} else if !errors.As(err, &bad) {
			t.Fatalf("%q is not malformed: %v", log, err)
		}
	}
}

// The error of a log without a valid line says what its first line lacks in the nearest format.
func TestNearestFormat(t *testing.T) {
	for _, tt := range []struct{ log, nearest, lack string }{
		{`192.0.2.7 - - [17/May/2015:10:05:03] "GET / HTTP/1.1" 200 1`, "Common", errTime.want},
		{`192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" OK 1`, "Common", errStatus.want},
		{`192.0.2.7 [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, "Common", errClient.want},
		{`{"ts":[1431857103],`, "JSON", errJSON.want},
		{`{"remote_addr":"192.0.2.7"}`, "JSON", errNoTime.want},
		{`{"ts":1431857103,"msg":"starting"}`, "JSON", errNoPart.want},
		{`{"ts":"[17/05/2015]"}`, "JSON", `time "[17/05/2015]"`},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 0/0/5007 212 --`, "HAProxy",
			errProxyTimers.want},
		{`http 2015-05-17T10:05:03Z app/lb/1 192.0.2.7:1 - -1 -1 -1 - - 0 0`, "AWS ALB",
			errALBRequest.want},
		{`[2015-05-17T10:05:03.310Z] "GET / HTTP/1.1" 200 - 0 1 2 3`, "Envoy", errEnvoyHeaders.want},
		{"#Fields: date c-ip\n2015-05-17 192.0.2.7", "W3C", errFields.want},
		{iisLine, "W3C", errNoFields.want},
		{iisLine[:19], "W3C", errNoFields.want},
		{"#Fields: date time c-ip\n2015-05-17 10:05 192.0.2.7", "W3C", errDateTime.want},
		{`{"log":"method=GET path=/\n","stream":"stdout"}`, "logfmt", errNoTime.want},
		{`method=GET path=/`, "logfmt", errNoTime.want},
		{syslogPrefixes[0] + haproxyLine[:90], "HAProxy", errProxyRequest.want},
	} {
		got := noFormat(t, tt.log+"\nsomething else\n", Schema{})
		for _, want := range []string{"a.log: no valid line in ", ": want " + wantFormat,
			"; nearest is " + tt.nearest, tt.lack} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: error %q, want %q", tt.log, got, want)
			}
		}
	}
}

func TestNoLineAtAll(t *testing.T) {
	long := strings.Repeat("x", MaxLine+1)
	for _, log := range []string{long, "#Version: 1.0\n"} {
		if got := noFormat(t, log, Schema{}); !strings.HasSuffix(got, ": want "+wantFormat) {
			t.Errorf("%.20q: error %q", log, got)
		}
	}
	for _, log := range []string{"", "\n", " \t\r\n\n"} {
		if got := noFormat(t, log, Schema{}); got != "a.log: the log is empty" {
			t.Errorf("%q: error %q", log, got)
		}
	}
	got := noFormat(t, "x", Schema{LogFormat: "[$msec] $remote_addr"})
	want := `a.log: no valid line in 1: want lines of the given format; nearest is the given format` +
		`: a.log:1: want "[" at the start: "x"`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
