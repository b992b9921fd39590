package httplimit

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
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
			if lines := h["Trailer"]; len(lines) > 0 {
				names := listed([]string{strings.Join(lines, ",")})
				h["Trailer"] = slices.DeleteFunc(names, func(name string) bool {
					return strings.EqualFold(name, p.field)
				})
			}
		}
	}
}

// hideTrailers removes the fields that are hidden from the trailers that were not announced.
func (s *Settlement) hideTrailers(h http.Header) {
	for i := range s.parts {
		p := &s.parts[i].price
		maps.DeleteFunc(h, func(key string, _ []string) bool {
			name, isTrailer := strings.CutPrefix(key, http.TrailerPrefix)
			return p.hidden && isTrailer && strings.EqualFold(name, p.field)
		})
	}
}

// beginUsage begins to read the usage of the response, if a rule has its cost there.
func (s *Settlement) beginUsage(h http.Header) {
	for i := range s.parts {
		if s.parts[i].price.kind == policy.ResponseUsage {
			s.usage = s.call.l.usage.Read(s.call.r, h)
			return
		}
	}
}

// readBody reads the costs that the body has shown.
func (s *Settlement) readBody() {
	if s.call.r.Method == http.MethodHead { // net/http drops the body
		s.bytes = 0
	}
	s.report(policy.ResponseBytes, float64(s.bytes))
	if s.usage != nil {
		if tokens, ok := s.usage.Usage(); ok && tokens >= 0 {
			s.report(policy.ResponseUsage, tokens)
		}
	}
}

// report makes a number of tokens the cost of the rules with this kind of source.
func (s *Settlement) report(kind string, tokens float64) {
	for i := range s.parts {
		if p := &s.parts[i]; p.price.kind == kind {
			p.actual, p.known = p.price.bound(tokens), true
		}
	}
}
