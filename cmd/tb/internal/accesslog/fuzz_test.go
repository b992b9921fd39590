package accesslog

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"
)

// FuzzLogLine parses a line of any format. A request holds no more than the line does, and
// printing it gives a line with the same request, and from that the same line again.
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
		decoded := format == JSON && bytes.ContainsAny(line, `\[`)
		for _, text := range texts(&rec) {
			if !within(text, line) && (!decoded || len(text) > 3*len(line)) {
				t.Errorf("%q: %d bytes %.60q are not a part of the line", line, len(text), text)
			}
		}
		if format != JSON && year > maxYear {
			return // the leap second that ends 2261, in the farthest west
		}
		if format != JSON && isObject(rec.Peer) {
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

// parser parses lines as a Reader does.
type parser struct{ Reader }

func newParser() *parser {
	clf := &clfParser{extra: len(extra.Extra), forwarded: true}
	return &parser{Reader{clf: clf, json: newJSONParser(extra)}}
}

// parse parses a line of any format.
func (p *parser) parse(line []byte, rec *Record) (Format, error) {
	p.format = Undetected
	err := p.Reader.parse(line, rec)
	return p.format, err
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
		`{"ts":0.000000001,"host":"a/b","uri":"GET /a HTTP/1.1","a":"1"}`,
		`{"ts":9223372036854775806,"a":"1","request":{"headers":{"X":"é"}}}`,
		`192.0.2.7, 10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 17`,
		`- - - [17/May/2015:10:05:03 +0000] "-" 200 17 "-" "-" "192.0.2.7, \"10.0.0.1"`,
		`{"ts":0.000000001,"request":{"headers":{"X-Forwarded-For":"192.0.2.7, 10.0.0.1"}}}`,
		`{"ts":0.000000001,"ip":"a, b","request":{"headers":{"X":"é","X-Forwarded-For":"c"}}}`,
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
