package httplimit

import (
	"net/url"
	"strings"
)

// ResolvePath returns the path of a request as selectors compare it, and as a proxy must forward
// it so that an upstream cannot read another one: Path and RawPath of a URL. Empty segments and
// dot segments, also as %2e, are resolved. A path without any stays as it is, an encoded slash
// included.
//
// It reports false if servers disagree about the path, so that the request must be refused. The
// path then has a NUL, a slash or backslash that makes another path once it is decoded and
// resolved, as in /v1/..%2fx, or a dot segment with parameters, as in /..;/.
func ResolvePath(u *url.URL) (path, rawPath string, ok bool) {
	if u.Path == "*" || isPlainPath(u.Path) && u.RawPath == "" {
		return u.Path, "", true
	}
	escaped := strings.TrimPrefix(u.EscapedPath(), "/")
	var raw, decoded []string
	for more := true; more; {
		var segment string
		segment, escaped, more = strings.Cut(escaped, "/")
		text, err := url.PathUnescape(segment)
		if err != nil || isAmbiguous(text, !more) {
			return "", "", false
		}
		n := len(decoded)
		switch text {
		case "..":
			if n--; n >= 0 && strings.ContainsFunc(decoded[n], isSlash) {
				return "", "", false
			}
			n = max(n, 0)
			fallthrough
		case ".", "":
			raw, decoded = raw[:n], decoded[:n]
			if !more { // the path ends with a slash
				raw, decoded = append(raw, ""), append(decoded, "")
			}
		default:
			raw, decoded = append(raw, segment), append(decoded, text)
		}
	}
	path, rawPath = "/"+strings.Join(decoded, "/"), "/"+strings.Join(raw, "/")
	if (&url.URL{Path: path}).EscapedPath() == rawPath {
		rawPath = ""
	}
	return path, rawPath, true
}

// isPlainPath reports whether a path that has no encoded characters is resolved already.
func isPlainPath(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := range len(p) {
		switch p[i] {
		case 0, '\\', ';':
			return false
		case '/':
			if i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.') {
				return false
			}
		}
	}
	return true
}

// isAmbiguous reports whether servers disagree about a decoded segment. Some servers take an
// encoded slash or a backslash as a separator, and cut parameters off a segment.
func isAmbiguous(segment string, last bool) bool {
	if strings.IndexByte(segment, 0) >= 0 {
		return true
	}
	parts := strings.FieldsFunc(segment, isSlash)
	if slashes := strings.Count(segment, "/") + strings.Count(segment, `\`); slashes > 0 {
		separators := len(parts) - 1 // if no part is empty
		endsWithSlash := last && isSlash(rune(segment[len(segment)-1]))
		if endsWithSlash {
			separators++
		}
		if slashes != separators {
			return true
		}
	}
	for i, part := range parts {
		name, _, hasParameters := strings.Cut(part, ";")
		switch isDots := name == "." || name == ".."; {
		case isDots && (hasParameters || len(parts) > 1 || part != segment):
			return true
		case name == "" && hasParameters && (!last || i < len(parts)-1):
			return true
		}
	}
	return false
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }
