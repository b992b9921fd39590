package httplimit

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/hostname"
)

// normalized returns s with hosts and paths in the form in which requests are compared: in lower
// case if foldPaths is true.
func normalized(s policy.Selector, foldPaths bool) policy.Selector {
	s.Hosts = slices.Clone(s.Hosts)
	for i, h := range s.Hosts {
		s.Hosts[i] = hostname.Bare(h)
	}
	if s.PathExact != "" {
		s.PathExact = resolved(slashed(s.PathExact))
	}
	if s.PathPrefix != "" {
		s.PathPrefix = resolved(slashed(s.PathPrefix) + "/")
	}
	if foldPaths {
		s.PathExact, s.PathPrefix = strings.ToLower(s.PathExact), strings.ToLower(s.PathPrefix)
	}
	return s
}

// picks reports whether the set's selector, which is normalized, picks the request. It reports ambiguous if s
// picks it or not as one reads the path: see ResolvePath.
func (s *set) picks(r *http.Request, foldPaths bool) (picked, ambiguous bool) {
	method := func(m string) bool { return strings.EqualFold(m, r.Method) }
	if len(s.Methods) > 0 && !slices.ContainsFunc(s.Methods, method) {
		return false, false
	}
	if len(s.Hosts) > 0 && !slices.Contains(s.Hosts, hostname.Bare(r.Host)) {
		return false, false
	}
	if s.PathExact == "" && s.PathPrefix == "" {
		return true, false
	}
	p, ok := comparedPath(r.URL)
	if foldPaths {
		p = strings.ToLower(p)
	}
	return ok && (s.PathExact != "" && p == s.PathExact ||
		s.PathPrefix != "" && strings.HasPrefix(p, s.PathPrefix)), !ok
}

// comparedPath returns the resolved path with backslashes and encoded slashes as slashes, several
// slashes as one, and parameters only in its last segment, because some servers take them so.
func comparedPath(u *url.URL) (string, bool) {
	p, _, ok := ResolvePath(u)
	if p = withoutParameters(slashed(p)); strings.Contains(p, "//") {
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
