package httplimit

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// ResolvePath returns the path of a request as selectors compare it, but with the parameters of its
// segments, and as a proxy must forward it so that an upstream cannot read another one: Path and
// RawPath of a URL. Empty segments and dot segments, also as %2e, are resolved. A path without any
// stays as it is, an encoded slash included.
//
// It reports false if servers disagree about the path, such as /v1/..%2fx or /v1;a%2fb/x, so that
// the request must be refused: docs/policy.md lists the forms. It also reports false for a URL
// without a path of its own, which has all of it in Opaque.
func ResolvePath(u *url.URL) (path, rawPath string, ok bool) {
	if u.Opaque != "" {
		return "", "", false
	}
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
		switch n := len(decoded) - 1; text {
		case "", ".":
		case "..":
			if n >= 0 {
				if strings.ContainsFunc(decoded[n], isSlash) {
					return "", "", false
				}
				raw, decoded = raw[:n], decoded[:n]
			}
		default:
			raw, decoded = append(raw, segment), append(decoded, text)
			continue
		}
		if !more { // the path ends with a slash
			raw, decoded = append(raw, ""), append(decoded, "")
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
	if !strings.HasPrefix(p, "/") {
		return false
	}
	for i := 1; i < len(p); i++ {
		switch c := p[i]; {
		case c == 0, c == '\\', c == ';', p[i-1] == '/' && (c == '/' || c == '.'):
			return false
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
	for i, part := range parts {
		name, _, hasParameters := strings.Cut(part, ";")
		switch isDots := name == "." || name == ".."; {
		case isDots && (hasParameters || len(parts) > 1 || part != segment):
			return true
		case hasParameters && name == "" && (!last || i < len(parts)-1),
			hasParameters && !last && i < len(parts)-1:
			return true
		}
	}
	return false
}

// withoutParameters returns a decoded path without the parameters of the segments before the last
// one, because some servers cut them off.
func withoutParameters(p string) string {
	if strings.IndexByte(p, ';') < 0 {
		return p
	}
	segments := strings.Split(p, "/")
	for i, s := range segments[:len(segments)-1] {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// CanForward reports whether an HTTP client can send a request on as it is. A server of net/http
// accepts more over HTTP/2, such as a host with a slash. A proxy must answer such a request with
// 400 before it asks a Limiter, and put the host of its upstream in place of an empty Host. Its
// transport would fail, or send another host than the rules have judged. Adaptive rules do not
// observe the response to such a request, so that no client lowers their rate with it.
func CanForward(r *http.Request) bool {
	return (r.Method == "" || policy.IsMethod(r.Method)) &&
		!strings.ContainsFunc(r.Host, isNotOfHost) && !strings.Contains(r.URL.RawQuery, " ")
}

// isNotOfHost reports whether a client of HTTP does not send a character of a host on as it is. It
// encodes other letters than ASCII, drops the zone of an address, and sends no host in place of one
// with other characters.
func isNotOfHost(c rune) bool {
	isLetter := 'a' <= c|0x20 && c|0x20 <= 'z'
	return !isLetter && (c < '0' || c > '9') && !strings.ContainsRune("!$&'()*+,-.:;=[]_~", c)
}
