package httplimit

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

func (s Selector) normalize() Selector {
	s.Hosts = slices.Clone(s.Hosts)
	for i, h := range s.Hosts {
		s.Hosts[i] = bareHost(h)
	}
	if s.PathPrefix != "" && !strings.HasSuffix(s.PathPrefix, "/") {
		s.PathPrefix += "/"
	}
	return s
}

// picks says whether the request is one of s. It must be normalized.
func (s *Selector) picks(r *http.Request) bool {
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, r.Method) {
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

// resolved returns the path that "//v1", "/./v1" and "/x/../v1" are other names of, since
// what serves the request may resolve them too.
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
		return p // as it was: no new string
	}
	return clean + "/"
}

// bareHost returns a host without its port and the dot at its end, in lower case.
func bareHost(h string) string {
	if i := strings.LastIndexByte(h, ':'); i > strings.LastIndexByte(h, ']') {
		h = h[:i]
	}
	return strings.ToLower(strings.TrimSuffix(h, "."))
}
