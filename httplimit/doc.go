// Package httplimit limits the requests to an http.Handler by a policy. A rule of the policy has a
// token bucket for each client address, API key, claim of a token or other key, and several rules
// can apply to a request. If one of them refuses it, no rule is charged: see tb.TakeAll.
//
// [PerAddress] makes a [Limiter] with one rule: each client address has a bucket. [PerKey] has a
// bucket for each user, or for what else a function returns. For other rules, [ParsePolicy] reads a
// policy from JSON (docs/policy.md), [Rules] makes one in Go, and [New] makes a Limiter of it.
// [FromFile] does so with a file, which it watches. [Limiter.Middleware] wraps a handler:
//
//	limiter, err := httplimit.New(policy)
//	...
//	http.ListenAndServe(addr, limiter.Middleware(handler))
//
// The response to a granted request says how many tokens are left, in the field RateLimit
// (draft-ietf-httpapi-ratelimit-headers). For older clients it also has RateLimit-Limit,
// RateLimit-Remaining and RateLimit-Reset, the seconds until the bucket has one more token.
// With the option [WithContext], [FromContext] returns the [Decision] of the rule with the fewest
// tokens left.
//
// The response to a refused request has status 429, a problem document (RFC 9457) and Retry-After:
// the wait in whole seconds, and up to half of it more, rounded up, which spreads the clients out.
// If a cost can never fit, the document has the member "retryable", which is false, and the wait is
// (cost − tokens)/rate, but at most 16 hours. A request that lacks a key of a rule with [Reject]
// gets status 400 and no RateLimit fields. [WithRefusal] lets the application answer instead.
// [Fields] lists the fields that can be added or left out.
//
// # Costs known afterwards
//
// The cost of a request may be in its response, such as the tokens of a language model: see [Cost].
// Middleware charges an estimate and settles it when the response has ended. The ResponseWriter of
// such a request is wrapped: see [Settlement.Writer]. docs/policy.md states the bound. An
// application without Middleware calls [Limiter.Admit] and settles with the [Settlement].
//
// A server that is not of net/http makes a Request for its rules, and calls [Limiter.Take].
// [WithHeader] reads the fields of such requests.
//
// # Client addresses
//
// No proxy is trusted by default: the client is the peer of the connection. A server behind a proxy
// must set Trusted of [ClientAddress]. Otherwise all its clients share the bucket of the proxy.
//
// Early data of HTTP/3 gets status 425 if a rule, a shadow rule too, or an exception needs its
// address, because that may be forged. Browsers send the request again.
//
// # Delay
//
// A rule with OnLimit [Delay] makes a request wait for its tokens instead of refusing it. Waiting
// starts no goroutine. A client that disconnects meanwhile gives its tokens back, and the handler
// does not see the request. Call [Limiter.StopWaiting] before http.Server.Shutdown.
//
// # Failure
//
// A [Store] can fail: it does not answer in time (see [WithTimeout]), or answers what makes no
// sense. Then the request passes without fields, and no enforced rule counts it as granted or
// refused. Tokens that were taken before may stay taken. [WithFailClosed] answers 503 instead. A
// client cannot cause such a failure, because the store sees neither the client's deadline nor its
// disconnection.
//
// # Hostile clients
//
// A header field, a query parameter and a claim that nothing verifies have the values that a client
// invents. [policy.Policy.Warnings] lists rules that such values escape: see docs/policy.md.
//
// # The files, as a request goes through them
//
// [Limiter.Middleware] and the other ways in are in take.go. The work on a request is a call
// (call.go). matching.go finds the rules of the policy that apply (rules.go), their tiers and
// classes (choice.go), by its path (path.go), the parts of its key (key.go, value.go) and its cost
// (cost.go). take.go takes the tokens from the store (store.go). wait.go waits for them, and counts
// how long a client must wait. block.go holds the keys of a refusal. Then response.go writes the
// fields, and answers a refusal. settlement.go settles the costs that the response has. reload.go
// replaces the policy meanwhile, stats.go counts, snapshot.go saves, explain.go explains and
// reset.go forgives. limiter.go, option.go and policy.go have the types of an application.
package httplimit
