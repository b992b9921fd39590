package httplimit

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

var hostName = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)

func (s *Selector) check(path string, errs *problems) {
	for name, p := range map[string]string{"pathExact": s.PathExact, "pathPrefix": s.PathPrefix} {
		if p != "" && p[0] != '/' {
			errs.add(field(path, name), "must start with / (got %q)", p)
		}
	}
	for i, h := range s.Hosts {
		if !hostName.MatchString(h) { // *.example.com would pick nothing
			errs.add(index(field(path, "hosts"), i),
				"must be a host name, an IPv4 address or an IPv6 address in brackets (got %q)", h)
		}
	}
	for i, m := range s.Methods {
		if m == "" {
			errs.add(index(field(path, "methods"), i), "must not be empty")
		}
	}
}

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

// picks says whether the request is one of s. It must be normalized.
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
