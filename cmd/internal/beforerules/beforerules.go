// Package beforerules has what tb-proxy does with a request before any rule, also for the commands
// that predict it.
package beforerules

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Status returns the status with which tb-proxy answers a request that it does not pass on, and
// why, or 0. It replaces the path of another request by the one that the selectors of the policy
// compare, so that the upstream cannot read another path, and escapes its query.
func Status(r *http.Request) (status int, why string) {
	switch {
	case r.Method == http.MethodTrace, r.Method == http.MethodConnect:
		return http.StatusNotImplemented, "it passes on no " + r.Method
	case !httplimit.CanForward(r):
		return http.StatusBadRequest, "it cannot send it on as it is"
	case hasTwoMeanings(r.URL.RawQuery):
		return http.StatusBadRequest, "its query has two meanings"
	case !resolveURL(r):
		return http.StatusBadRequest, "its path has two meanings"
	}
	return 0, ""
}

// hasTwoMeanings reports whether the upstream may read another query than the rules. Some servers
// end a query at a #, and those in Go read none with more than 10,000 parameters.
func hasTwoMeanings(query string) bool {
	return strings.Contains(query, "#") || strings.Count(query, "&") >= 10_000
}

// resolveURL reports false if there is no path that all servers read alike.
func resolveURL(r *http.Request) bool {
	path, rawPath, ok := httplimit.ResolvePath(r.URL)
	if !ok || !strings.HasPrefix(path, "/") { // as in OPTIONS *
		return false
	}
	query := escape(r.URL.RawQuery)
	if path != r.URL.Path || rawPath != r.URL.RawPath || query != r.URL.RawQuery {
		u := *r.URL
		u.Path, u.RawPath, u.RawQuery = path, rawPath, query
		r.URL = &u
	}
	return true
}

// escape escapes each % of a query that begins no escape, as in ?discount=5%. Many servers read it
// as it is. Others drop the parameter, as the rules would.
func escape(query string) string {
	if _, err := url.QueryUnescape(query); err == nil {
		return query
	}
	var b strings.Builder
	for i := range len(query) {
		b.WriteByte(query[i])
		if query[i] == '%' && !beginsHex(query[i+1:]) {
			b.WriteString("25")
		}
	}
	return b.String()
}

func beginsHex(s string) bool {
	isHex := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
	return len(s) >= 2 && isHex(s[0]) && isHex(s[1])
}

// IsForwarding reports whether a field, named in canonical form, is one in which a proxy reports
// the client or the client's request. No rule sees those that no trusted proxy sent.
func IsForwarding(name string) bool {
	if !strings.HasPrefix(name, "X") && !strings.HasPrefix(name, "F") {
		return false
	}
	plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(plain, "x-forwarded") || plain == "x-real-ip" || plain == "forwarded"
}

// Drops reports whether tb-proxy drops a field before any rule, with the defaults of its flags:
// one that a peer may have forged, one that upstreams may read as another, and one for a proxy.
func Drops(name string, trusted bool) bool {
	return !trusted && IsForwarding(name) || strings.Contains(name, "_") || name == "Forwarded" ||
		name == "Proxy-Authorization"
}
