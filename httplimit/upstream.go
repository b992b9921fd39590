package httplimit

import (
	"net/http"
	"strings"
)

// ModifyResponse is for the field of that name in an httputil.ReverseProxy behind Middleware. It
// calls DropFields if the limiter has set fields of its own. Otherwise ReverseProxy would add the
// upstream's fields to them. After Decide, call DropFields instead.
func ModifyResponse(r *http.Response) error {
	c, ok := r.Request.Context().Value(decisionKey{}).(*decisionContext)
	if ok && !c.silent {
		DropFields(r.Header)
	}
	return nil
}

// DropFields drops the fields in which an upstream reports its own limits and which can be
// there only once: RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and every field that
// starts with X-RateLimit-. RateLimit and RateLimit-Policy are lists, so the upstream's items
// stay.
func DropFields(h http.Header) {
	for name := range h {
		if isSingleton(name) {
			delete(h, name)
		}
	}
}

func isSingleton(name string) bool {
	const legacy = "X-RateLimit-"
	switch {
	case len(name) < len(legacy): // the shortest of them
		return false
	case strings.EqualFold(name[:len(legacy)], legacy):
		return true
	}
	return strings.EqualFold(name, fieldLimit) || strings.EqualFold(name, fieldRemaining) ||
		strings.EqualFold(name, fieldReset)
}
