// Package algorithm has the rate limiters that a token bucket is compared with: fixed window,
// sliding log, sliding window counter, leaky bucket and GCRA. They are reference code, in integers
// and without rounding. tb/cas is the token bucket of the comparison.
//
// # One limit for all
//
// All algorithms have the limit of a token bucket. Its burst is the count of a window, and the
// length of a window is the time in which the rate supplies the burst:
//
//	count  = burst
//	window = burst / rate
//
// This is the only window that grants the same number of requests at once and, for ever, the same
// number a second. In a leaky bucket, the burst is the length of the queue, and the rate drains
// it. In GCRA the burst is the tolerance, as the time in which the rate supplies it.
//
// # Bounds
//
// In any interval of d ≤ window, a key is granted at most
//
//	token bucket     burst + rate·d
//	fixed window     2·burst
//	sliding log      burst
//	sliding window   burst + rate·d
//	leaky bucket     rate·d and one request, as they leave the queue
//	GCRA             burst + rate·d
//
// docs/algorithms.md has the reasons, and says when to prefer which.
//
// # Time and units
//
// An instant is a number of nanoseconds since 1970. The time of a key never steps back. A request
// with an earlier instant is decided at the latest instant of its key, and by tb/cas on its bucket
// as it stands. Both are the same if all requests of the key have the same cost.
//
// A cost is in units, which are millionths of a token. The window is rounded up to a nanosecond.
// Fixed windows begin at its multiples.
package algorithm
