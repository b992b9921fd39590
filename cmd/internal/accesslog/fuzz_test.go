package accesslog

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

// FuzzLogLine parses a line of any format. A request holds no more than the line does. Common Log
// Format and JSON read in another way give the same request.
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
		year := time.Unix(0, rec.Time).UTC().Year()
		if rec.Time < 0 || year > maxYear+1 {
			t.Errorf("%q has a time in the year %d", line, year)
		}
		if bytes.ContainsAny(rec.Path, "?#") {
			t.Errorf("%q has the path %q", line, rec.Path)
		}
		// A text of logfmt or JSON may be decoded elsewhere, and then a byte that is not UTF-8
		// becomes three. A list of addresses may have + or %20 in place of a space.
		decoded := format == Logfmt || bytes.Contains(line, []byte{'{'})
		plain := strings.NewReplacer("+", " ", "%20", " ").Replace(string(line))
		for _, text := range texts(&rec) {
			isPart := within(text, line) || isList(text) && strings.Contains(plain, string(text))
			if !isPart && (!decoded || len(text) > 3*len(line)) {
				t.Errorf("%q: %d bytes %.60q are not a part of the line", line, len(text), text)
			}
		}
		readAgain(t, format, line, &rec)
	})
}

// extra are additional fields.
var extra = Schema{Extra: []string{"a", "request.headers.X"}}

// readAgain reads a line in another way, which gives the same request if it can read the line.
func readAgain(t *testing.T, format Format, line []byte, rec *Record) {
	var object map[string]any
	switch {
	case format == Common || format == Combined:
		common, _, _ := strings.Cut(combinedFormat, ` "$http`)
		d, err := newDetector(Schema{LogFormat: common})
		if err != nil {
			t.Fatal(err)
		}
		var again Record
		err = d.parse(line, &again)
		if err != nil || !bytes.HasPrefix(line, rec.Peer) || len(again.Method) == 0 {
			return // a virtual host or a prefix, or a word instead of a request
		}
		first, second := kept(rec), kept(&again)
		first.user = string(emptyIfDash(bytes.Trim(rec.User, " "))) // as if columns were padded
		if first != second {
			t.Errorf("%q is %+v, and as a log_format %+v", line, first, second)
		}
	case format == JSON && utf8.Valid(line) && json.Unmarshal(line, &object) == nil:
		text, ok := object["a"].(string)
		if ok && text != "-" && string(rec.Fields[0]) != text {
			t.Errorf("%q has %q, and in encoding/json %q", line, rec.Fields[0], text)
		}
	}
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
	return p.chosen.format, err
}

// texts returns all texts of a record.
func texts(rec *Record) [][]byte {
	return append([][]byte{rec.Peer, rec.Forwarded, rec.User, rec.Host, rec.Path}, rec.Fields...)
}

// within reports whether part is a part of whole, or empty.
func within(part, whole []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	from := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	isInside := from <= at && at+uintptr(len(part)) <= from+uintptr(len(whole))
	return isInside || len(part) == 0
}
