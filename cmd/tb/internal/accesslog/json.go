package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonParser parses JSON lines. One pass over a line collects the raw values of all paths of
// the schema. A field has several candidate paths, and the first one found counts.
type jsonParser struct {
	scan   scanner
	time   timeParser
	values [][]byte // by slot: one for each path of each field
	first  []int    // the first slot of each field, and the end of the last
}

// newJSONParser returns a parser for the fields of a schema.
func newJSONParser(s Schema) *jsonParser {
	p := &jsonParser{scan: scanner{root: &node{}}}
	for field, paths := range s.candidates() {
		p.first = append(p.first, len(p.values))
		for _, path := range paths {
			p.scan.root.add(path, len(p.values), field == fieldPeer || field == fieldForwarded)
			p.values = append(p.values, nil)
		}
	}
	p.first = append(p.first, len(p.values))
	return p
}

// parse fills rec from line. Only the time is required: a log without addresses can still be
// limited by user. A size that is not a number is Unknown.
func (p *jsonParser) parse(line []byte, rec *Record) (Format, error) {
	extra := len(p.first) - 1 - numFields
	rec.reset(extra)
	clear(p.values)
	if !p.scan.line(line, p.values) {
		return Undetected, errJSON
	}
	time := p.field(fieldTime)
	if len(time) == 0 {
		return Undetected, errNoTime
	}
	var ok bool
	if rec.Time, ok = p.timestamp(time); !ok {
		return Undetected, fmt.Errorf("time %q: %w", time[:min(len(time), excerpt)], errBadTime)
	}
	rec.Peer = p.field(fieldPeer)
	rec.Forwarded = p.field(fieldForwarded)
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

// field returns the text of the first candidate for a field that is not missing or empty.
func (p *jsonParser) field(f int) []byte {
	for _, raw := range p.values[p.first[f]:p.first[f+1]] {
		if text := emptyIfDash(unquote(raw)); len(text) > 0 {
			return text
		}
	}
	return nil
}

// uri splits the URI. In nginx's $request, it is part of a whole request line.
func (p *jsonParser) uri() (host, path []byte) {
	uri := p.field(fieldURI)
	if bytes.IndexByte(uri, ' ') >= 0 {
		return splitRequest(uri)
	}
	return splitURI(uri)
}

// timestamp parses a time in any of the usual notations. The position of the first
// separator decides which one it is. b must not be empty.
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

// unquote returns the text of a raw value, or nil if the value is not valid. It allocates only
// for an array, and for a text with an escape, which is rare.
func unquote(raw []byte) []byte {
	if len(raw) > 0 && raw[0] == '[' {
		return joinTexts(raw)
	}
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

// joinTexts joins the strings of a raw array with commas, as the lines of a header field are
// joined. A string with an escape is not an address, so only the strings after it count.
func joinTexts(raw []byte) []byte {
	s := scanner{data: raw, pos: len("[")}
	list := make([]byte, 0, len(raw))
	for more := true; more; more = s.consume(',') {
		text, ok := s.text()
		if !ok || bytes.IndexByte(text, '\\') >= 0 {
			list = list[:0]
			continue
		}
		list = append(append(list, text...), ',')
	}
	return bytes.TrimSuffix(list, []byte{','})
}
