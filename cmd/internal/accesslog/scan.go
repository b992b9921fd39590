package accesslog

import (
	"bytes"
	"slices"
	"strings"
)

// scanner walks over a JSON object and keeps the raw values at the wanted paths. It skips
// other values by matching brackets and strings. It checks only as much of the syntax as it
// needs to find the values, and it recurses no deeper than the wanted paths.
type scanner struct {
	root   *node    // the wanted paths
	data   []byte   // the line
	pos    int      // how much of it has been scanned
	values [][]byte // the raw values found, by slot
}

// line scans an object into values, and reports whether the line is one object.
func (s *scanner) line(data []byte, values [][]byte) bool {
	s.data, s.pos, s.values = data, 0, values
	return s.consume('{') && s.object(s.root) && s.peek() == 0
}

// object scans the members of an object and its closing brace. If a name occurs twice, the
// last member counts.
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

// value scans a value of any kind. Nothing in it is wanted if n is nil. A null counts as
// missing, so that the next candidate counts.
func (s *scanner) value(n *node) (ok bool) {
	c := s.peek()
	start := s.pos
	switch {
	case c == '{' && n != nil:
		s.pos++
		return s.object(n)
	case c == '[' && n != nil && !n.whole:
		return s.array(n)
	case c == '{' || c == '[':
		ok = s.skip()
	default:
		ok = s.scalar(c)
	}
	if raw := s.data[start:s.pos]; n != nil && string(raw) != "null" {
		for _, slot := range n.slots {
			s.values[slot] = raw
		}
	}
	return ok
}

// array scans an array. Its first element counts if it is a scalar: Caddy logs the values of
// a header field as an array, nearly always of one. The array is then skipped as a whole, so
// nested arrays need no recursion.
func (s *scanner) array(n *node) bool {
	start := s.pos
	s.pos++
	if c := s.peek(); c != '[' && c != '{' && c != ']' && !s.value(n) {
		return false
	}
	s.pos = start
	return s.skip()
}

// scalar scans a string, a number, true, false or null that begins with c. It also accepts nothing
// at all: nginx writes an empty variable as nothing, and only the format has the quotes.
func (s *scanner) scalar(c byte) (ok bool) {
	if c == '"' {
		_, ok = s.text()
		return ok
	}
	for s.pos < len(s.data) && isLiteral[s.data[s.pos]] {
		s.pos++
	}
	return true
}

// isLiteral has the bytes of numbers and of the words true, false and null.
var isLiteral = func() (is [256]bool) {
	for _, c := range []byte("+-.0123456789Eaeflnrstu") {
		is[c] = true
	}
	return is
}()

// text scans a string and returns its text, still escaped.
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

// skip passes over an object or array, up to its closing bracket.
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

// peek passes over white space and returns the next byte, or 0 at the end.
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

// blanks are the white space of JSON.
var blanks = []byte(" \t\r\n")

// consume passes over c if it is next, and reports whether it was.
func (s *scanner) consume(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// node is a node in the tree of all candidate paths. A path may end where another goes on:
// "request" is a text in one log and an object in another.
type node struct {
	slots    []int // the slots of the values here
	whole    bool  // whether an array is a value, and not its first element
	children byName[*node]
}

// child returns the child of n with that name, or nil if no path leads there.
func (n *node) child(name []byte) *node {
	child, _ := n.children.get(name)
	return child
}

// add adds a path whose value goes to slot. The path may also be a name: some programs write
// {"source.ip": …} for {"source": {"ip": …}}.
func (n *node) add(path string, slot int, whole bool) {
	end := n
	for name := range strings.SplitSeq(path, ".") {
		end = end.enter(name)
	}
	for _, leaf := range []*node{end, n.enter(path)} {
		if !slices.Contains(leaf.slots, slot) {
			leaf.slots = append(leaf.slots, slot)
			leaf.whole = leaf.whole || whole
		}
	}
}

// enter returns the child of n with that name, which it makes if there is none.
func (n *node) enter(name string) *node {
	child := n.child([]byte(name))
	if child == nil {
		child = &node{}
		n.children.add(name, child)
	}
	return child
}

// byName finds values by names that are not empty, faster than a map of as few. Its lists are
// indexed by the length of the name.
type byName[V any] [][]entry[V]

type entry[V any] struct {
	name  string
	value V
}

// get returns the value of a name. Comparing the first bytes is faster than a call that compares
// all.
func (x byName[V]) get(name []byte) (value V, ok bool) {
	if len(name) < len(x) && len(name) > 0 {
		for i := range x[len(name)] {
			if e := &x[len(name)][i]; name[0] == e.name[0] && string(name) == e.name {
				return e.value, true
			}
		}
	}
	return value, false
}

// add adds a name that is not there.
func (x *byName[V]) add(name string, value V) {
	for len(*x) <= len(name) {
		*x = append(*x, nil)
	}
	(*x)[len(name)] = append((*x)[len(name)], entry[V]{name, value})
}
