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
		{`192.0.2.7 - - [17/May/2015:10:05:03] "GET / HTTP/1.1" 200 1`, "common", errTime.want},
		{`192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" OK 1`, "common", errStatus.want},
		{`{"ts":[1431857103],`, "json", errJSON.want},
		{`{"remote_addr":"192.0.2.7","status":200}`, "json", errNoTime.want},
		{`{"ts":1431857103,"msg":"starting"}`, "json", ErrMessage.Error()},
		{`{"ts":"[17/05/2015]","status":200}`, "json", `time "[17/05/2015]"`},
		{`192.0.2.7:1 [17/May/2015:10:05:03.123] f b/s 0/0/5007 212 --`, "haproxy",
			"want $number before"},
		{`http 2015-05-17T10:05:03Z app/lb/1 192.0.2.7:1 - -1 -1 -1 - - 0 0`, "alb",
			"want $bytes_sent before"},
		{`[2015-05-17T10:05:03.310Z] "GET / HTTP/1.1" 200 - 0 1 2 3`, "envoy", "want $word before"},
		{`INFO:     192.0.2.7:1 - "GET / HTTP/1.1" 200 OK`, "uvicorn", errTimeless.want},
		{`www.h.example - - [17/May/2015:10:05:03 +0000] "192.0.2.7" "GET / HTTP/1.1" 200 1 "-" "x"`,
			"combined", errHostFirst.want},
		{`2015-05-17 10:05:03 10.0.0.1 GET / 200`, "common", errOrigin.want},
		{`{"log":"method=GET path=/\n","stream":"stdout"}`, "logfmt", errNoTime.want},
		{syslogPrefixes[0] + haproxyLine[:90], "haproxy", "want $text before"},
	} {
		got := noFormat(t, tt.log+"\nsomething else\n", Schema{})
		for _, want := range []string{"a.log: no valid line in ", "; want common, json, w3c, haproxy, ",
			": nearest is " + tt.nearest, tt.lack} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: error %q, want %q", tt.log, got, want)
			}
		}
	}
	got := noFormat(t, "x", Schema{LogFormat: "[$msec] $remote_addr"})
	want := `a.log: no valid line in 1; a.log:1: nearest is log_format: ` +
		`want "[" at the start: "x"; want lines of the given format`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNoLineAtAll(t *testing.T) {
	long := strings.Repeat("x", MaxLine+1)
	for _, log := range []string{long, "#Version: 1.0\n"} {
		if got := noFormat(t, log, Schema{}); !strings.HasSuffix(got, "; --format reads others") {
			t.Errorf("%.20q: error %q", log, got)
		}
	}
	for _, log := range []string{"", "\n", " \t\r\n\n"} {
		if got := noFormat(t, log, Schema{}); got != "a.log: the log is empty" {
			t.Errorf("%q: error %q", log, got)
		}
	}
}

// The first object that lacks a field under its usual names has its names in the hint.
func TestHints(t *testing.T) {
	for log, want := range map[string]string{
		`{"time":"2015-05-17T10:05:03Z","peerIp":"192.0.2.7","path":"/a"}`: `an object has` +
			` ["time","peerIp","path"]: --field ip=NAME, time=NAME or uri=NAME says which one to use`,
		caddyLine: "",
	} {
		r, err := NewReader(t.Context(), "a.log", strings.NewReader(log), Schema{})
		var rec Record
		if err = errors.Join(err, r.Next(&rec)); err != nil || r.Hint() != want {
			t.Errorf("%v, hint %q, want %q", err, r.Hint(), want)
		}
	}
	for _, before := range []string{"", `{"ts":1431857103,"msg":"starting"}` + "\n"} {
		got := noFormat(t, before+`{"when":1,"uri":"/a"}`, Schema{})
		if want := `an object has ["when","uri"]: --field`; !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

// Most of the first hundred lines decide, and not the first one.
func TestFormatsThatLookAlike(t *testing.T) {
	log := `{"time":"2015-05-17T10:05:03Z","ip":"10.0.0.1","msg":"started"}` + "\n" +
		strings.Repeat(line("192.0.2.7")+"\n", 3)
	got, bad, format := read(t, strings.NewReader(log), Schema{})
	if format != Common || len(got) != 3 || len(bad) != 1 {
		t.Errorf("%s: %+v, malformed %v", format, got, bad)
	}
}

// Lines before the names of their columns are not read by names that come later.
func TestLinesBeforeTheirFields(t *testing.T) {
	log := "2015-05-17 10:05:03 192.0.2.1 10.0.0.1 /a\n#Fields: date time s-ip c-ip cs-uri-stem\n" +
		"2015-05-17 10:05:03 10.0.0.1 192.0.2.1 /a\n"
	got, bad, _ := read(t, strings.NewReader(log), Schema{})
	if len(got) != 1 || got[0].ip != "192.0.2.1" || !errors.Is(bad[0], errNoFields) {
		t.Errorf("%+v, malformed %v", got, bad)
	}
}

// Two formats that fit and find the same requests are as good as one. If they find others, only
// the operator knows which one is right.
func TestTwoFormatsThatFit(t *testing.T) {
	for _, tt := range []struct {
		other string
		ok    bool
	}{
		{`$remote_addr $a [$time_local]`, true},
		{`$a $remote_addr [$time_local]`, false},
	} {
		d, err := newDetector(Schema{LogFormat: `$remote_addr $a [$time_local] $b`})
		if err != nil {
			t.Fatal(err)
		}
		p, err := newFormatParser(tt.other, Schema{})
		if err != nil {
			t.Fatal(err)
		}
		d.parsers = append(d.parsers, namedParser{parser: p, format: "another format"})
		err = d.choose([]byte("192.0.2.7 10.0.0.1 [17/May/2015:10:05:03 +0000] x"))
		if (err == nil) != tt.ok || err != nil && (!strings.Contains(err.Error(), "want --format") ||
			!strings.Contains(err.Error(), "log_format and another format fit")) {
			t.Errorf("%s: error %v", tt.other, err)
		}
		if chosen := d.chosen.parser != nil; chosen != tt.ok {
			t.Errorf("%s: a format is chosen: %t", tt.other, chosen)
		}
	}
}
