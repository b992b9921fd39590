// Package cas is the lock-free implementation of the contract of package tb.
//
// The whole state of a bucket is one word, advanced by compare-and-swap:
//
//	 63   62                       width 0
//	+----+-------------------------+---+----------------------+
//	|seal| delta: the bucket's time    | deficit: what is     |
//	|    |        minus its base       | missing to full      |
//	+----+-----------------------------+----------------------+
//	  both in units of the fixed point (a token is 10⁰ to 10⁶ units)
//
// Time is measured in units too, by the supply clock: S(t) is the number of units
// that the rate has supplied by t. Refilling a bucket of time s at t is therefore a
// subtraction, deficit − (S(t) − s), and because differences of the one integer
// function S telescope, nothing is ever rounded away, however often a bucket is
// touched. base is an immutable field beside the word. The instant at which a bucket
// will be full again is base + delta + deficit, whatever the time is now.
//
// width is fixed for a limiter: the deficit has room for just under twice the capacity, for
// buckets that are charged after the fact, and the delta has the rest, at least 32 bits.
// It spans at least four times the time to fill a bucket, and 250 times or more up to a
// capacity of 100 million. When it has run out, the next grant moves the bucket to a new
// base: the one case in which a call on a key in the table allocates, takes a lock (of a
// bucket of the map, for an instant), and in which even a call that is refused in the end
// may have written: the seal, if others were granted before it could move the bucket.
//
// A sealed word never changes again, other than to evicted. Whoever meets one does not
// wait for its sealer. If the bucket was evicted, the caller adds the key anew. If its
// delta ran out, a refusal is decided on the word as it stands, and a grant is to put in
// the bucket's place a successor that was charged its cost, or to find that somebody else
// was first.
//
// An insert into a full table corrects at most 16 stale stamps and then evicts the
// best bucket it has seen. So in a table whose buckets were all spent from since the
// last insert, ForgiveLeast may forgive a little more than the least debt, and
// RefuseNew may refuse a new key somewhat longer than needed. ForgiveLeast also keeps
// an order of its own for the share of the keys that falls to each processor, from
// 8,192 keys on.
package cas
