package accesslog

import "bytes"

// scanner walks over a JSON object and keeps the raw scalars that are looked for.
// What is not looked for is skipped by matching brackets and strings. It checks no
// more of the syntax than finding the values takes, and it recurses no deeper than
// the paths looked for, whatever the line.
type scanner struct {
	root   *node    // what is looked for
	data   []byte   // the line
	pos    int      // how much of it has been scanned
	values [][]byte // what was found, by slot: scalars as they stand in the line
}

// line scans one object into values and says whether the line is one.
func (s *scanner) line(data []byte, values [][]byte) bool {
	s.data, s.pos, s.values = data, 0, values
	return s.consume('{') && s.object(s.root) && s.peek() == 0
}

// object scans the members of an object and its closing brace. Of members with the same
// name the last counts.
func (s *scanner) object(n *node) bool {
	if s.consume('}') {
		return true
	}
	for {
		name, ok := s.text()
		if !ok || !s.consume(':') || !s.value(n.child(name)) {
			return false
		}
		if s.consume('}') {
			return true
		}
		if !s.consume(',') {
			return false
		}
	}
}

// value scans a value of any kind. A nil node looks for nothing in it. A null counts as
// not there, so that another field can stand in.
func (s *scanner) value(n *node) bool {
	c := s.peek()
	switch {
	case c == '{' && n != nil:
		s.pos++
		return s.object(n)
	case c == '[' && n != nil:
		return s.array(n)
	case c == '{' || c == '[':
		return s.skip()
	}
	raw, ok := s.scalar(c)
	if n != nil && string(raw) != "null" {
		for _, slot := range n.slots {
			s.values[slot] = raw
		}
	}
	return ok
}

// array scans an array, of which a scalar first element counts: Caddy logs the values of
// a header as a list, nearly always of one. Then it is skipped as a whole, and so arrays in
// arrays need no recursion.
func (s *scanner) array(n *node) bool {
	start := s.pos
	s.pos++
	if c := s.peek(); c != '[' && c != '{' && c != ']' && !s.value(n) {
		return false
	}
	s.pos = start
	return s.skip()
}

// scalar scans a string, a number, true, false or null that begins with c.
func (s *scanner) scalar(c byte) (raw []byte, ok bool) {
	start := s.pos
	if c == '"' {
		_, ok := s.text()
		return s.data[start:s.pos], ok
	}
	for s.pos < len(s.data) && isLiteral[s.data[s.pos]] {
		s.pos++
	}
	return s.data[start:s.pos], s.pos > start
}

// isLiteral has the bytes that numbers and the words true, false and null consist of.
var isLiteral = func() (is [256]bool) {
	for _, c := range []byte("+-.0123456789Eaeflnrstu") {
		is[c] = true
	}
	return is
}()

// text scans a string and returns what stands between its quotes, still escaped.
func (s *scanner) text() (text []byte, ok bool) {
	if s.peek() != '"' {
		return nil, false
	}
	end := closingQuote(s.data[s.pos:])
	if end < 0 {
		return nil, false
	}
	text = s.data[s.pos+1 : s.pos+end]
	s.pos += end + 1
	return text, true
}

// skip passes over an object or array: up to the bracket that closes the first one.
func (s *scanner) skip() bool {
	for depth := 0; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			end := closingQuote(s.data[s.pos:])
			if end < 0 {
				return false
			}
			s.pos += end
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return true
			}
		}
	}
	return false
}

// peek passes over white space and returns the byte that follows, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if bytes.IndexByte(blanks, c) < 0 {
			return c
		}
		s.pos++
	}
	return 0
}

// blanks are what JSON calls white space.
var blanks = []byte(" \t\r\n")

// consume passes over c if it comes next.
func (s *scanner) consume(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}
