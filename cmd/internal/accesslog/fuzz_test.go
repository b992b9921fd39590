package accesslog

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"
	"unsafe"
)

// FuzzLogLine parses a line of any format. A request holds no more than the line does, and
// printing it gives a line with the same request, and from that the same line again. What a format
// cannot be printed in is printed as JSON.
func FuzzLogLine(f *testing.F) {
	f.Fuzz(func(t *testing.T, line []byte) {
		line, _, _ = bytes.Cut(line, []byte{'\n'})
		var rec Record
		format, err := newParser().parse(line, &rec)
		if err != nil {
			if format != Undetected {
				t.Errorf("%q is malformed and %s", line, format)
			}
			return
		}
		year := instant(rec.Time).Year()
		if rec.Time < 0 || year > maxYear+1 {
			t.Errorf("%q has a time in the year %d", line, year)
		}
		if bytes.ContainsAny(rec.Path, "?#") {
			t.Errorf("%q has the path %q", line, rec.Path)
		}
		// A text with an escape is decoded elsewhere, and then a byte that is not UTF-8
		// becomes three. An array is joined elsewhere.
		decoded := format == Logfmt ||
			(format == JSON || bytes.HasPrefix(line, []byte{'{'})) && bytes.ContainsAny(line, `\[`)
		for _, text := range texts(&rec) {
			if !within(text, line) && (!decoded || len(text) > 3*len(line)) {
				t.Errorf("%q: %d bytes %.60q are not a part of the line", line, len(text), text)
			}
		}
		if format != Common && format != Combined {
			if slices.ContainsFunc(texts(&rec), func(b []byte) bool { return !utf8.Valid(b) }) {
				return // JSON cannot hold it beside an escape
			}
			if format = JSON; !rec.hasPart() || string(rec.Peer) == "-" {
				return // JSON has other lines than requests, and no address is "-"
			}
		}
		if format != JSON && year > maxYear {
			return // the leap second that ends 2261, in the farthest west
		}
		if format != JSON && bytes.HasPrefix(bytes.TrimSpace(rec.Peer), []byte{'{'}) {
			return // after a virtual host; without it the line would be JSON
		}
		reprint(t, format, &rec)
	})
}

// reprint prints rec, reads it back, prints that, and returns the line.
func reprint(t *testing.T, format Format, rec *Record) []byte {
	t.Helper()
	line := appendLine(nil, format, rec)
	var back Record
	f, err := newParser().parse(line, &back)
	if err != nil || f != format || kept(rec) != kept(&back) ||
		!bytes.Equal(rec.Forwarded, back.Forwarded) ||
		!slices.EqualFunc(rec.Fields, back.Fields, bytes.Equal) {
		t.Fatalf("%#v %q (%s) is printed as\n%q, and read as\n%#v %q (%s, %v)",
			kept(rec), rec.Fields, format, line, kept(&back), back.Fields, f, err)
	}
	if again := appendLine(nil, f, &back); !bytes.Equal(line, again) {
		t.Fatalf("%q, read and printed again, is\n%q", line, again)
	}
	return line
}

// newParser returns a parser of lines of any format.
func newParser() *lineParser {
	d, err := newDetector(extra)
	if err != nil {
		panic(err)
	}
	return &lineParser{d}
}

// lineParser parses each line as if it were the first of a log.
type lineParser struct{ detector }

func (p *lineParser) parse(line []byte, rec *Record) (Format, error) {
	p.chosen = reading{}
	err := p.detector.parse(line, rec)
	rec.findForwarded()
	return p.chosen.format, err
}

// texts returns all texts of a record.
func texts(rec *Record) [][]byte {
	return append([][]byte{rec.Peer, rec.Forwarded, rec.User, rec.Host, rec.Path}, rec.Fields...)
}

// within reports whether part is a part of whole, or empty.
func within(part, whole []byte) bool {
	if len(part) == 0 {
		return true
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	from := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	return from <= at && at+uintptr(len(part)) <= from+uintptr(len(whole))
}

// Lines that are printed as they stand.
func TestCanonicalLines(t *testing.T) {
	for _, line := range []string{
		`192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 17`,
		`2001:db8::1 - eve b [17/May/2015:10:05:03 +0000] "GET /\"a b\" HTTP/1.1" 200 - "-" "-"`,
		`- - - [01/Jan/1970:00:00:00 +0000] "-" 200 0`,
		`192.0.2.7 - - [29/Feb/2016:23:59:59 +0000] "GET http://h.example/a HTTP/1.1" 200 17`,
		`h.example:999999 192.0.2.7 - - [17/May/2015:10:05:03 +0000] "GET * HTTP/1.1" 200 17`,
		`1.2.3.4 - - [31/Dec/2261:23:59:59 -2359] "GET /a HTTP/1.1" 200 999999999999999999`,
		`{"ts":1431857103123456789,"ip":"192.0.2.7","uri":"GET /a HTTP/1.1","size":17}`,
		`{"ts":1431857103123456789,"ip":"192.0.2.7","user":"a\"b\\\n"}`,
		`{"ts":"1970-01-01T00:00:00.000000001Z","host":"a/b","uri":"GET /a HTTP/1.1","a":"1"}`,
		`{"ts":9223372036854775806,"a":"1","request":{"headers":{"X":"é"}}}`,
		`192.0.2.7, 10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 17`,
		`- - - [17/May/2015:10:05:03 +0000] "-" 200 17 "-" "-" "192.0.2.7, \"10.0.0.1"`,
		`{"ts":"1970-01-01T00:00:00.000000001Z","request":{"headers":{"X-Forwarded-For":"192.0.2.7, 10.0.0.1"}}}`,
		`{"ts":"1970-01-01T00:00:00.000000001Z","ip":"a, b","request":{"headers":{"X":"é","X-Forwarded-For":"c"}}}`,
	} {
		var rec Record
		format, err := newParser().parse([]byte(line), &rec)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if got := reprint(t, format, &rec); string(got) != line {
			t.Errorf("%s is printed as\n%s", line, got)
		}
	}
}

// FuzzW3C parses a line after a directive that names its columns. A request holds no more than
// the line does.
func FuzzW3C(f *testing.F) {
	f.Add("date time c-ip cs-uri-stem sc-bytes", []byte("2015-05-17 10:05:03 192.0.2.7 /a 17"))
	f.Add("Time DATE x-host-header", []byte("10:05:03.5\t2015-05-17\th.example\t"))
	f.Add("date time date a cs-username", []byte("2015-05-17 10:05:03 - #x CORP\\eve"))
	f.Fuzz(func(t *testing.T, columns string, line []byte) {
		p := newW3CParser(extra)
		var rec Record
		_, _ = p.parse([]byte("#Fields: "+columns), &rec)
		checkParsed(t, p, line)
	})
}

// FuzzLogFormat parses a line of a log_format.
func FuzzLogFormat(f *testing.F) {
	f.Add(combinedFormat, []byte(line("192.0.2.7")+` "-" "curl"`))
	f.Add(`${msec}|$a|"$http_x_forwarded_for"`, []byte(`1431857103.123|b|"::1, \"1.2.3.4"`))
	f.Add(`t:$time_iso8601\tip:$remote_addr`, []byte("t:2015-05-17T10:05:03Z\tip:-"))
	f.Fuzz(func(t *testing.T, format string, line []byte) {
		p, err := newFormatParser(format, extra, formatCandidates)
		if err != nil {
			t.Skip(err)
		}
		checkParsed(t, p, line)
	})
}

// checkParsed parses a line, and checks that its request is a part of it.
func checkParsed(t *testing.T, p parser, line []byte) {
	var rec Record
	rec.reset(len(extra.Extra))
	if _, err := p.parse(line, &rec); err != nil {
		return
	}
	if year := instant(rec.Time).Year(); rec.Time < 0 || year > maxYear+1 {
		t.Errorf("%q has a time in the year %d", line, year)
	}
	for _, text := range texts(&rec) {
		if !within(text, line) {
			t.Errorf("%q: %.60q is not a part of the line", line, text)
		}
	}
}
