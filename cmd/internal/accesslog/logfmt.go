package accesslog

import "bytes"

// logfmtParser parses lines of logfmt (https://brandur.org/logfmt), pairs with spaces between:
//
//	ts=2015-05-17T10:05:03Z remote_addr=192.0.2.7 method=GET path="/a b" bytes=17
//
// A value with spaces is in quotes, where a backslash escapes the next byte. A key may have no
// value. The keys are the fields of JSON logs.
type logfmtParser struct {
	fields
	keys byName[[]int]
}

var errPair = &lack{0, "want pairs of key=value"}

// newLogfmtParser returns a parser for the keys of a schema.
func newLogfmtParser(s Schema) *logfmtParser {
	p := &logfmtParser{fields: newFields(s, jsonCandidates, unquoteText)}
	for _, path := range p.paths {
		if _, ok := p.keys.get([]byte(path)); !ok {
			p.keys.add(path, p.slots(path))
		}
	}
	return p
}

// parse refuses a line that does not begin with a pair: any text is a list of keys.
func (p *logfmtParser) parse(line []byte, rec *Record) (Format, error) {
	clear(p.values)
	for rest := line; len(rest) > 0; {
		key := rest
		if end := bytes.IndexAny(rest, "= "); end >= 0 {
			key = rest[:end]
		}
		rest = rest[len(key):]
		if len(rest) == 0 || rest[0] != '=' {
			if len(rest) == len(line)-len(key) {
				return Undetected, errPair
			}
			rest = bytes.TrimLeft(rest, " ")
			continue
		}
		value, ok := logfmtValue(rest[1:])
		if !ok || len(key) == 0 || bytes.IndexByte(key, '"') >= 0 {
			return Undetected, errPair
		}
		rest = bytes.TrimLeft(rest[1+len(value):], " ")
		if slots, ok := p.keys.get(key); ok {
			p.set(slots, value)
		}
	}
	return Logfmt, p.fillRequest(rec)
}

// logfmtValue returns the value that b begins with, still quoted. It returns false if the
// value does not end where it should.
func logfmtValue(b []byte) (value []byte, ok bool) {
	if len(b) > 0 && b[0] == '"' {
		end := closingQuote(b)
		return b[:end+1], end >= 0 && (end == len(b)-1 || b[end+1] == ' ')
	}
	if end := bytes.IndexByte(b, ' '); end >= 0 {
		b = b[:end]
	}
	return b, true
}
