// Package httplimit limits requests to an http.Handler by policies: token buckets for each
// address, API key, claim of a token or whatever else tells clients apart, several at once,
// charged all or nothing.
//
// A policy is read by ParsePolicy from JSON (docs/policy.md) or built in Go, New makes a
// Limiter of it, and Limiter.Middleware wraps a handler:
//
//	limiter, err := httplimit.New(policy)
//	...
//	http.ListenAndServe(addr, limiter.Middleware(handler))
//
// Requests that are granted carry the Decision of the binding rule in their context, and
// their responses tell the client what is left (RateLimit of
// draft-ietf-httpapi-ratelimit-headers and the older RateLimit-Limit, -Remaining and
// -Reset). The others are answered with 429, Retry-After and a problem document (RFC 9457).
// Limiter.Decide does the same for programs that have no place for a Middleware.
//
// # All or nothing
//
// If any of the rules that apply refuses, none is charged: see tb.TakeAll. This holds for
// the limiters of tb/cas, which are the default; WithLimiter says what holds for others.
//
// # Failure
//
// If a limiter cannot decide, because the store that it shares is down, nothing is charged,
// the request passes without fields, and Hooks.Error and RuleStats.Errors tell of it.
// WithFailClosed answers 503 instead, and so is answered, to nobody, a client that has
// hung up: otherwise that would be a way past a limiter that heeds the request's context.
// The limiters of tb/cas cannot fail.
package httplimit
