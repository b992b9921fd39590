package httplimit

import (
	"net/http"
)

// part is the settlement of one rule, or only hides its field.
type part struct {
	*entry
	known  bool
	actual float64
}

// ReadHeader reads the costs from the header of a response, and removes the fields that are hidden.
// The writer of Writer calls it. A proxy calls it with the header of a response that it writes to a
// hijacked connection. Only the first call has an effect.
func (s *Settlement) ReadHeader(h http.Header) {
	if s == nil || s.isRead {
		return
	}
	s.isRead = true
	s.beginUsage(h)
	s.observe(http.StatusOK, h) // if the status is another one, it is observed already
	for i := range s.parts {
		if p := &s.parts[i]; p.price.field != "" {
			p.actual, p.known = p.price.actual(h[p.price.field])
		}
	}
	for i := range s.parts {
		if p := &s.parts[i].price; p.hidden {
			delete(h, p.field)
		}
	}
}

// countBytes makes the bytes of the body the cost of the rules that count them.
func (s *Settlement) countBytes() {
	if s.call.r.Method == http.MethodHead { // net/http drops the body
		s.bytes = 0
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.price.kind == responseBytes {
			p.actual, p.known = p.price.bound(float64(s.bytes)), true
		}
	}
}

// beginUsage begins to read the usage of the response, if a rule has its cost there.
func (s *Settlement) beginUsage(h http.Header) {
	for i := range s.parts {
		if s.parts[i].price.kind == responseUsage {
			s.usage = s.call.l.usage.Read(s.call.r, h)
			return
		}
	}
}

// readUsage makes the usage of the response the cost of the rules that have it there.
func (s *Settlement) readUsage() {
	if s.usage == nil {
		return
	}
	tokens, ok := s.usage.Usage()
	if !ok || !(tokens >= 0) {
		return
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.price.kind == responseUsage {
			p.actual, p.known = p.price.bound(tokens), true
		}
	}
}
