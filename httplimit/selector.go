package httplimit

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// normalize returns s with hosts and paths in the form in which requests are compared.
func (s Selector) normalize() Selector {
	s.Hosts = slices.Clone(s.Hosts)
	for i, h := range s.Hosts {
		s.Hosts[i] = bareHost(h)
	}
	if s.PathExact != "" {
		s.PathExact = resolved(s.PathExact)
	}
	if s.PathPrefix != "" {
		s.PathPrefix = resolved(s.PathPrefix + "/")
	}
	return s
}

// picks reports whether s, which must be normalized, picks the request.
func (s *Selector) picks(r *http.Request) bool {
	method := func(m string) bool { return strings.EqualFold(m, r.Method) }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, method) {
		return false
	}
	if len(s.Hosts) > 0 && !slices.Contains(s.Hosts, bareHost(r.Host)) {
		return false
	}
	if s.PathExact == "" && s.PathPrefix == "" {
		return true
	}
	p := resolved(r.URL.Path)
	return s.PathExact != "" && p == s.PathExact ||
		s.PathPrefix != "" && strings.HasPrefix(p, s.PathPrefix)
}

// resolved returns the path "/v1" for "//v1", "/./v1" and "/x/../v1", because the handler may
// resolve such paths, too.
func resolved(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	clean := path.Clean(p)
	switch {
	case clean == "/" || !strings.HasSuffix(p, "/") && !strings.HasSuffix(p, "/.") &&
		!strings.HasSuffix(p, "/.."):
		return clean
	case len(p) == len(clean)+1 && p[:len(clean)] == clean:
		return p // unchanged, without a new string
	}
	return clean + "/"
}

// bareHost returns a host in lower case, without its port and a dot at its end.
func bareHost(h string) string {
	if i := strings.LastIndexByte(h, ':'); i > strings.LastIndexByte(h, ']') {
		h = h[:i]
	}
	return strings.ToLower(strings.TrimSuffix(h, "."))
}
