package httplimit

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// part is the settlement of one rule, or only hides its field.
type part struct {
	*entry
	declared bool // the field is a trailer
	known    bool
	actual   float64
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
		if p := &s.parts[i]; p.price.response.field != "" {
			p.declared = declaresTrailer(h, p.price.response.field)
			p.read(h[p.price.response.field])
		}
	}
	for i := range s.parts {
		if p := &s.parts[i].price.response; p.hidden {
			delete(h, p.field)
			hideTrailer(h, p.field)
		}
	}
}

// read reads the cost from the values of a field. A field without a number changes nothing.
func (p *part) read(values []string) {
	if actual, ok := p.price.actual(values); ok {
		p.actual, p.known = actual, true
	}
}

// declares reports whether a header that was read declares a trailer with a cost.
func (s *Settlement) declares() bool {
	return slices.ContainsFunc(s.parts, func(p part) bool { return p.declared })
}

// forgetDeclared removes the fields of declared trailers from a header that is written. What the
// handler sets from then on is the trailer: net/http would send the values of the header, too.
func (s *Settlement) forgetDeclared(h http.Header) {
	for i := range s.parts {
		if p := &s.parts[i]; p.declared {
			delete(h, p.price.response.field)
		}
	}
}

// readTrailers reads the costs from the trailers of the response, and removes the fields that are
// hidden. ReadHeader has removed their declarations, so net/http sends no declared ones.
func (s *Settlement) readTrailers(h http.Header) {
	for i := range s.parts {
		p := &s.parts[i]
		if p.declared {
			p.read(h[p.price.response.field])
		}
		for key, values := range h {
			if isUndeclared(key, p.price.response.field) {
				p.read(values)
			}
		}
	}
	for i := range s.parts {
		if p := &s.parts[i].price.response; p.hidden {
			maps.DeleteFunc(h, func(key string, _ []string) bool { return isUndeclared(key, p.field) })
		}
	}
}

// countBytes makes the bytes of the body the cost of the rules that count them.
func (s *Settlement) countBytes() {
	if s.call.r.Method == http.MethodHead { // net/http drops the body
		s.bytes = 0
	}
	for i := range s.parts {
		if p := &s.parts[i]; p.price.response.countsBytes() {
			p.actual, p.known = p.price.bound(float64(s.bytes)), true
		}
	}
}

// beginUsage begins to read the usage of the response, if a rule has its cost there.
func (s *Settlement) beginUsage(h http.Header) {
	for i := range s.parts {
		if s.parts[i].price.response.usage {
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
		if p := &s.parts[i]; p.price.response.usage {
			p.actual, p.known = p.price.bound(tokens), true
		}
	}
}

// declaresTrailer reports whether a header declares a trailer field.
func declaresTrailer(h http.Header, field string) bool {
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if isField(name, field) {
				return true
			}
		}
	}
	return false
}

// hideTrailer removes the declaration of a trailer field from a header.
func hideTrailer(h http.Header, field string) {
	var others []string
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if !isField(name, field) {
				others = append(others, strings.TrimSpace(name))
			}
		}
	}
	delete(h, "Trailer")
	if len(others) > 0 {
		h["Trailer"] = []string{strings.Join(others, ", ")}
	}
}

func isField(name, field string) bool {
	return http.CanonicalHeaderKey(strings.TrimSpace(name)) == field
}

// isUndeclared reports whether a handler sets a trailer field that it has not declared under a key.
func isUndeclared(key, field string) bool {
	name, ok := strings.CutPrefix(key, http.TrailerPrefix)
	return ok && isField(name, field)
}
