// Package httplimit limits the requests to an http.Handler by a policy: token buckets for each
// client address, API key, claim of a token or key of the application's own, several at once.
//
// ParsePolicy reads a policy from JSON (docs/policy.md), and Rules makes one in Go. New makes a
// Limiter of the policy, and Limiter.Middleware wraps a handler:
//
//	limiter, err := httplimit.New(policy)
//	...
//	http.ListenAndServe(addr, limiter.Middleware(handler))
//
// A granted request carries the Decision of the binding rule in its context. Its response says
// how many tokens are left, in the fields RateLimit (draft-ietf-httpapi-ratelimit-headers) and,
// for older clients, RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset. A refused request
// is answered with 429, Retry-After and a problem document (RFC 9457).
//
// The format of policies and the field X-Fairvisor-Reason of refusals come from Fairvisor, a
// gateway for API limits (https://docs.fairvisor.com/docs/algorithms/token-bucket).
// WithReasonField renames the field or turns it off.
//
// # Client addresses
//
// No proxy is trusted by default: the client is the peer of the connection. A server behind a
// proxy must set ClientAddress.Trusted, or all its clients share the proxy's bucket.
//
// # All or nothing
//
// If one of the rules that apply refuses a request, no rule is charged: see tb.TakeAll. This
// holds for the limiters of tb/cas, which are the default. WithLimiter says how far it holds
// for other limiters.
//
// # Failure
//
// A limiter can fail, for example because its store is down. Then no rule is charged, the request
// passes without fields, and Hooks.Error and RuleStats.Errors report the failure. WithFailClosed
// answers 503 instead. If the client has disconnected by then, the answer is always 503:
// otherwise disconnecting would bypass a limiter that honours the request's context. The
// limiters of tb/cas cannot fail.
package httplimit
