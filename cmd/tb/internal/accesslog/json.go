package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonParser parses JSON lines. One walk over the line collects the raw values of
// all paths that are looked for; of the candidates for a field the first that was
// found counts.
type jsonParser struct {
	scan   scanner
	time   timeParser
	values [][]byte // by slot: one for each path of each field
	first  []int    // the first slot of each field, and the end of the last
}

// newJSONParser returns a parser that looks for what the schema names.
func newJSONParser(s Schema) *jsonParser {
	p := &jsonParser{scan: scanner{root: &node{}}}
	for _, paths := range s.candidates() {
		p.first = append(p.first, len(p.values))
		for _, path := range paths {
			p.scan.root.add(path, len(p.values))
			p.values = append(p.values, nil)
		}
	}
	p.first = append(p.first, len(p.values))
	return p
}

// parse fills rec from line. Only the time must be there: a log without clients may still
// be limited by user, and a size that is no number is Unknown.
func (p *jsonParser) parse(line []byte, rec *Record) (Format, error) {
	extra := len(p.first) - 1 - numFields
	rec.reset(extra)
	clear(p.values)
	if !p.scan.line(line, p.values) {
		return Undetected, errJSON
	}
	at := p.field(fieldTime)
	if len(at) == 0 {
		return Undetected, errNoTime
	}
	var ok bool
	if rec.Time, ok = p.timestamp(at); !ok {
		return Undetected, fmt.Errorf("time %q: %w", at[:min(len(at), excerpt)], errBadTime)
	}
	first, _, _ := bytes.Cut(p.field(fieldIP), comma)
	rec.IP = dash(first)
	rec.User = p.field(fieldUser)
	rec.Host, rec.Path = p.uri()
	if host := p.field(fieldHost); host != nil {
		rec.Host = host
	}
	if !rec.setSize(p.field(fieldSize)) {
		rec.Size = Unknown
	}
	for i := range extra {
		rec.Fields[i] = p.field(numFields + i)
	}
	return JSON, nil
}

// field returns the text of a field's first candidate that is there and not empty.
func (p *jsonParser) field(f int) []byte {
	for _, raw := range p.values[p.first[f]:p.first[f+1]] {
		if text := dash(unquote(raw)); len(text) > 0 {
			return text
		}
	}
	return nil
}

// uri splits the URI, which in nginx's $request stands in a whole request line.
func (p *jsonParser) uri() (host, path []byte) {
	uri := p.field(fieldURI)
	if bytes.IndexByte(uri, ' ') >= 0 {
		return target(uri)
	}
	return splitURI(uri)
}

// timestamp parses a time in any of the notations that loggers use. Where its first
// separator stands tells them apart. There is at least one byte.
func (p *jsonParser) timestamp(b []byte) (ns int64, ok bool) {
	switch {
	case b[0] < '0' || b[0] > '9':
		return 0, false
	case len(b) > 4 && b[4] == '-':
		return p.time.rfc3339(b)
	case len(b) > 2 && b[2] == '/':
		return p.time.clf(b)
	}
	return epoch(b)
}

// unquote returns the text of a raw scalar. Escapes are rare in what is used here, so
// only a text that has one is decoded, with an allocation; nil if that fails.
func unquote(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return raw
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return []byte(s)
}
