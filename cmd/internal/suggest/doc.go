// Package suggest finds the bursts that the requests in a log need, at several rates in one pass.
//
// # Nothing refused
//
// A client is never refused if its bucket has room for the greatest excess of its requests over the
// rate, in any interval. In network calculus that excess is the least burst of a leaky-bucket
// arrival curve (J.-Y. Le Boudec, P. Thiran, "Network Calculus", 2001, section 1.2). It is the
// greatest deficit of a bucket that never refuses, so a Collector follows this deficit in the
// integers of tb/mutex. The least capacity is exact, for any costs of whole tokens, clock readings
// and late lines: see DESIGN.md here. The table must not evict a bucket, and instants must count from the first
// line.
//
// # A share of the clients
//
// A client is refused at least once if and only if it needs more than the burst. So the least burst
// with which at most a share of the clients is ever refused is an order statistic of what they
// need, and is exact too.
//
// # Requests
//
// A refused request takes nothing, so how many requests a burst refuses does not follow from what
// clients need. If every request costs the same, Refusals decides the times of each client that the
// burst refuses.
//
// # Bounds
//
// A key takes about 150 bytes, the bytes of its text, and 16 bytes for each rate. As long as its
// buckets are alike at all rates, it takes these bytes only once: the key has sent a single request,
// or all its buckets are full again before each request. The times take 8 to 16 bytes a request, of up to 4,194,304 requests. If there are more keys than fit,
// a sample of them is kept.
package suggest
