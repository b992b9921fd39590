// Package grpclimit limits gRPC calls by a policy of package httplimit.
//
// A call is the HTTP/2 request that carries it: a POST to /package.Service/Method, with metadata as
// header fields. So policies, keys, delays, shadow rules, hooks and statistics are as in
// httplimit. docs/grpc.md says what each field of a policy means for a call.
//
//	limiter := grpclimit.PerAddress(20, 10) // each client: bursts of 20 calls, then 10 a second
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limiter.UnaryServerInterceptor()),
//		grpc.ChainStreamInterceptor(limiter.StreamServerInterceptor()),
//	)
//
// New takes any policy, also from httplimit.ParsePolicy.
//
// An interceptor that checks credentials and adds claims to the context comes before the limiter:
// see httplimit.ContextWithClaims.
//
// # Refusals
//
// A refused call ends with one of these codes, before its handler is called:
//
//   - ResourceExhausted if a bucket has too few tokens. The details are a QuotaFailure with each
//     rule that refuses and, if a wait helps, a RetryInfo with the wait. The trailer
//     grpc-retry-pushback-ms makes the retry policy of a client wait as long.
//   - InvalidArgument if the call lacks a key of a rule with Reject, has one more than once, or has
//     a path that servers may read in more than one way. The limiter cannot know whether a key is a
//     credential, so the code is not Unauthenticated.
//   - Unavailable, with RetryInfo, if a limiter fails and httplimit.WithFailClosed is set.
//   - Canceled or DeadlineExceeded if the context of the call ends while the call waits.
//
// The values of keys are in no status, because they may be secrets.
package grpclimit
