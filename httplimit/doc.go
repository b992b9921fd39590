// Package httplimit limits the requests to an http.Handler by a policy. A rule of the policy has a
// token bucket for each client address, API key, claim of a token or other key, and several rules
// can apply to a request.
//
// ParsePolicy reads a policy from JSON (docs/policy.md), and Rules makes one in Go. New makes a
// Limiter of the policy, and Limiter.Middleware wraps a handler:
//
//	limiter, err := httplimit.New(policy)
//	...
//	http.ListenAndServe(addr, limiter.Middleware(handler))
//
// The response to a granted request says how many tokens are left, in the fields RateLimit
// (draft-ietf-httpapi-ratelimit-headers) and, for older clients, RateLimit-Limit,
// RateLimit-Remaining and RateLimit-Reset. FromContext returns the Decision of the rule with the
// fewest tokens left. A refused request is answered with 429, Retry-After and a problem document
// (RFC 9457).
//
// The format of policies and the field X-Fairvisor-Reason of refusals come from Fairvisor, an
// open-source program that enforces API limits: see
// https://docs.fairvisor.com/docs/algorithms/token-bucket. WithReasonField renames the field or
// turns it off.
//
// # Client addresses
//
// No proxy is trusted by default: the client is the peer of the connection. A server behind a
// proxy must set ClientAddress.Trusted. Otherwise all its clients share the bucket of the proxy.
//
// # All or nothing
//
// If one of the rules that apply refuses a request, no rule is charged: see tb.TakeAll.
// WithLimiter says how far this holds for limiters that are not of tb/cas.
//
// # Failure
//
// A limiter that is not of tb/cas can fail, for example because its store is down or does not answer
// in time: see WithTimeout. Then no rule is charged, the request passes without fields, and
// Hooks.Error and RuleStats.Errors report it. WithFailClosed answers 503 instead. A client cannot
// cause such a failure, because the limiter sees neither its deadline nor its disconnection.
//
// # Hostile clients
//
// A header field, a query parameter and a claim that nothing verifies have the values that a client
// invents. Policy.Warnings lists rules that such values escape. A request that has a key of a rule
// more than once, or a path that servers read differently, is refused with 400: see docs/policy.md.
package httplimit
