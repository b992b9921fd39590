// Package cas is the lock-free implementation of the contract of package tb.
//
// The whole state of a bucket is one word, advanced by compare-and-swap:
//
//	 63                          width 0
//	+-----------------------------+---+------------------------+
//	| delta: the bucket's time    | deficit: what is missing   |
//	|        minus its base       |          to a full bucket  |
//	+-----------------------------+----------------------------+
//	  both in units of the fixed point (a token is 10⁰ to 10⁶ units)
//
// Time is measured in units too, by the supply clock: S(t) is the number of units
// that the rate has supplied by t. Refilling a bucket of time s at t is therefore a
// subtraction, deficit − (S(t) − s), and because differences of the one integer
// function S telescope, nothing is ever rounded away, however often a bucket is
// touched. base is an immutable field beside the word. The instant at which a bucket
// will be full again is base + delta + deficit, whatever the time is now.
//
// A word whose delta is at its maximum is sealed: it never changes again, but to
// evicted. Whoever meets one does not wait for its sealer. If it is evicted, the
// caller adds the key anew; if its delta ran out, the caller puts a successor with a
// later base in the bucket's place itself, or finds that someone else did.
package cas
