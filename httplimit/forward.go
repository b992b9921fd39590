package httplimit

import (
	"net/http"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/hostname"
)

// CanForward reports whether an HTTP client can send a request on as it is. A server of net/http
// accepts more over HTTP/2: a method or a query with a space, a host with a slash, and the like. A
// proxy must answer such a request with 400 before it asks a Limiter. Otherwise its transport
// fails, or sends another host than the rules have judged. Adaptive rules do not observe the
// response to such a request, so that no client lowers their rate with it.
func CanForward(r *http.Request) bool {
	return (r.Method == "" || policy.IsMethod(r.Method)) &&
		(r.Host == "" || hostname.IsValid(r.Host)) &&
		!strings.Contains(r.URL.RawQuery, " ")
}
