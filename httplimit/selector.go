package httplimit

import (
	"net/http"
	"net/netip"
	"net/url"
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
		s.PathExact = resolved(slashed(s.PathExact))
	}
	if s.PathPrefix != "" {
		s.PathPrefix = resolved(slashed(s.PathPrefix) + "/")
	}
	return s
}

// picks reports whether s, which must be normalized, picks the request. It reports ambiguous if s
// picks it or not as one reads the path: see ResolvePath.
func (s *Selector) picks(r *http.Request) (picked, ambiguous bool) {
	method := func(m string) bool { return strings.EqualFold(m, r.Method) }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, method) {
		return false, false
	}
	if len(s.Hosts) > 0 && !slices.Contains(s.Hosts, bareHost(r.Host)) {
		return false, false
	}
	if s.PathExact == "" && s.PathPrefix == "" {
		return true, false
	}
	p, ok := comparedPath(r.URL)
	return ok && (s.PathExact != "" && p == s.PathExact ||
		s.PathPrefix != "" && strings.HasPrefix(p, s.PathPrefix)), !ok
}

// comparedPath returns the resolved path with backslashes and encoded slashes as slashes, and
// several slashes as one, because some servers take them so.
func comparedPath(u *url.URL) (string, bool) {
	p, _, ok := ResolvePath(u)
	if p = slashed(p); strings.Contains(p, "//") {
		p = resolved(p)
	}
	return p, ok
}

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

// resolved returns a path of a policy in the form of ResolvePath.
func resolved(p string) string {
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") ||
		strings.HasSuffix(p, "/..")) {
		return clean + "/"
	}
	return clean
}

// bareHost returns a host in lower case, without its port and a dot at its end. An IPv6 address is
// in its shortest form.
func bareHost(h string) string {
	// Some servers take what is before the first colon for the name, so "h:80:90" is h.
	name := h[strings.LastIndexByte(h, ']')+1:]
	if i := strings.IndexByte(name, ':'); i >= 0 {
		h = h[:len(h)-len(name)+i]
	}
	if strings.HasPrefix(h, "[") {
		if a, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
			return "[" + a.String() + "]"
		}
	}
	return strings.ToLower(strings.TrimSuffix(h, "."))
}
