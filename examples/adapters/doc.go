// Package adapters has adapters of httplimit for some frameworks. Each is one short file, to be
// copied into an application.
//
//   - chi takes limiter.Middleware. The adapter makes the parameters of routes keys of rules.
//   - gin takes limiter.Middleware(engine) for all routes, and the adapter for some.
//   - echo takes the adapter, which also answers the errors of handlers.
//   - Fiber, which has no net/http, takes the adapter.
//   - connect takes the adapter, which answers with errors of Connect, gRPC and gRPC-Web.
//   - otel exports the counts of rules to OpenTelemetry.
//
// chi, gin and echo route a path as it is, so /search/../x comes to the handler of /search/*. A
// selector resolves it to /x. So give a route with such a handler its own limiter, or replace the
// path by the result of httplimit.ResolvePath before the limiter and the router.
package adapters
