// Package suggest finds the bursts that the requests in a log need, at several rates in one pass.
//
// # Nothing refused
//
// A client is never refused if its bucket has room for the greatest excess of its requests over the
// rate, in any interval. In network calculus that excess is the least burst of a leaky-bucket
// arrival curve (J.-Y. Le Boudec, P. Thiran, "Network Calculus", 2001, section 1.2). It is the
// greatest deficit of a bucket that never refuses, so a Collector follows this deficit in the
// integers of tb/mutex. The least capacity is exact, for any costs, clock readings and late lines:
// see DESIGN.md here. The table must not evict a bucket, and instants must count from the first
// line.
//
// # A share of the clients
//
// A client is refused at least once if and only if it needs more than the burst. So the least burst
// with which at most a share of the clients is ever refused is an order statistic of what they
// need, and is exact too.
//
// # A share of the requests
//
// A refused request takes nothing, so how many requests a burst refuses does not follow from what
// clients need. If every request costs c tokens, they are counted by the swings of the deficit. The
// tokens that a fluid of the same volume loses at a capacity of x are its upward truncated
// variation: the sum of max(0, p − x) over the sizes p of its swings, which are the pairs of highs
// and lows that rainflow counting finds (R. Łochowski, "Truncated variation, upward truncated
// variation and downward truncated variation of Brownian motion with drift", 2011; M. Matsuishi,
// T. Endo, 1968). One list of swings therefore serves all capacities. A bucket of capacity C
// refuses no more tokens than the fluid loses at C−c+g, and no fewer than the fluid loses at C. The
// grid g is at most a token. So the burst found is the least one, or more by at most c tokens. If
// the rate supplies whole tokens between all requests and c is 1, it is the least one. Bins make
// bursts beyond 1,024 larger by up to 0.2 % more.
//
// How many requests a burst refuses, and not the reverse, is counted: Refusals replays the times of
// each client that the burst refuses, if they were kept.
//
// # Bounds
//
// A key takes about 150 bytes, the bytes of its text, and 16 bytes for each rate, or 112 if costs
// may have decimals. As long as its buckets are alike at all rates, it takes these bytes only once:
// the key has sent a single request, or all its buckets are full again before each request. The
// swings that are not complete take 16 bytes each, and are fewer than the requests of a bucket
// since it was last full. If there are more keys than fit, a sample of them is kept, and the bursts
// are estimates.
package suggest
