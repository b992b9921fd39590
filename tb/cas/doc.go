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
// base. Only then does a call on a key in the table allocate, and take a lock: that of a
// bucket of the map, for a few instructions. It waits neither for an insert nor for the
// table to grow. Such a call may set the seal and still be refused, if others were granted
// before it could move the bucket.
//
// A sealed word never changes again, other than to evicted, and a caller that meets one
// does not wait for the caller that sealed it. If the bucket was evicted, the caller adds
// the key anew. If its delta ran out, a refusal is decided on the word as it stands. A caller
// that would be granted replaces the bucket with a successor that was charged the cost; if
// another caller was first, it starts over.
//
// A key takes about 90 bytes, and the bytes of its text; there is no bound on how long it
// may be. The limiter keeps a copy of it.
//
// An insert into a full table corrects the stale stamps of buckets that were used since
// the order looked at them: up to 16 if it has found a full bucket, and up to 1,024 if not.
// So ForgiveLeast forgives a debt while another bucket is full, or one that is not the
// least, only if more than 1,024 buckets were drained since the order looked at them; and
// RefuseNew may refuse a new key for the same reason.
package cas
