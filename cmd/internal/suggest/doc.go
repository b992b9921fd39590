// Package suggest finds the bursts that the requests in a log need, at several rates in one pass.
//
// A client is never refused if its bucket has room for the greatest excess of its requests over the
// rate, in any interval: the least burst of a leaky-bucket arrival curve (J.-Y. Le Boudec, P.
// Thiran, "Network Calculus", 2001, section 1.2). It is exact for any clock readings: see DESIGN.md
// here. So the least burst with which at most a share of the clients is ever refused is an order
// statistic of what they need. Only the kinds of clients that matter count, so that an attacker
// with many addresses does not raise the share. Refusals decides the times of each client that a
// burst refuses.
//
// A client takes 24 bytes, and 16 bytes for each rate from the first request on that finds a bucket
// neither full nor as the request before has left it. The times of up to 4,194,304 requests take 12
// bytes each, and at the end 20.
package suggest
