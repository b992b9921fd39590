// Package beforerules has what tb-proxy does with a request before any rule, also for the commands
// that predict it.
package beforerules

import (
	"net/http"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Status returns the status with which tb-proxy answers a request that it does not pass on, and
// why, or 0. It replaces the path of another request by the one that the selectors of the policy
// compare, so that the upstream cannot read another path.
func Status(r *http.Request) (status int, why string) {
	switch {
	case r.Method == http.MethodTrace, r.Method == http.MethodConnect:
		return http.StatusNotImplemented, "it passes on no " + r.Method
	case !httplimit.CanForward(r):
		return http.StatusBadRequest, "it cannot send it on as it is"
	case hasTwoMeanings(r.URL.RawQuery):
		return http.StatusBadRequest, "its query has two meanings"
	case !resolvePath(r):
		return http.StatusBadRequest, "its path has two meanings"
	}
	return 0, ""
}

// hasTwoMeanings reports whether the upstream may read another query than the rules. Some servers
// end a query at a #, and httputil.ReverseProxy drops one with more than 10,000 parameters.
func hasTwoMeanings(query string) bool {
	return strings.Contains(query, "#") || strings.Count(query, "&") >= 10_000
}

// resolvePath reports false if there is no path that all servers read alike.
func resolvePath(r *http.Request) bool {
	path, rawPath, ok := httplimit.ResolvePath(r.URL)
	if !ok || !strings.HasPrefix(path, "/") { // as in OPTIONS *
		return false
	}
	if path != r.URL.Path || rawPath != r.URL.RawPath {
		u := *r.URL
		u.Path, u.RawPath = path, rawPath
		r.URL = &u
	}
	return true
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
