// Package cas is the lock-free implementation of the contract of package tb.
//
// One word holds the state of a bucket, and calls advance it by compare-and-swap:
//
//	 63   62                       deficitBits 0
//	+----+--------------------------+---+------------------+
//	|seal| delta: the bucket's time     | deficit: what is |
//	|    |        minus its base        | missing to full  |
//	+----+------------------------------+------------------+
//	  both in units (a token is 10⁰ to 10⁶ units)
//
// Time is measured in units too, by the supply clock: S(t) is the number of units that the
// rate has supplied by t. To refill a bucket of time s at t is therefore a subtraction,
// deficit − (S(t) − s). S is one integer function and its differences telescope, so nothing is
// ever rounded away. The base is an immutable field beside the word. The bucket will be full
// when base + delta + deficit units are supplied, whatever the time is now.
//
// A limiter's layout fixes the width of the deficit. The deficit has room for just under twice
// the capacity, because a bucket that is charged after the fact can have debt. The delta has
// the other bits, at least 32. It spans at least four times the time to fill a bucket, and 250
// times or more for capacities up to 100 million.
//
// # When the delta runs out
//
// The next grant then seals the word and replaces the cell with a successor at a later base.
// The successor is already charged with the cost, so the replacement is the grant. Only such a
// grant allocates on a key in the table, and takes a lock: one of a bucket of the map, for a few
// instructions. It waits neither for an insert nor for the table to grow. Such a call may set
// the seal and still be refused, if other calls are granted before it.
//
// A sealed word never changes, except to evicted. A caller that meets a sealed word does not
// wait for the goroutine that sealed it. A refusal is decided from the sealed word. A caller
// that would be granted installs a successor itself; if another caller was first, the call
// starts over. If the word is evicted, the caller inserts the key again.
//
// # Memory and eviction
//
// A key takes about 90 bytes and the bytes of its text. The limiter keeps a copy of the key and
// does not bound its length.
//
// An insert into a full table corrects the stale stamps of buckets that were used since the
// order last looked at them: up to 16 once it has found a full bucket, and up to 1,024 before.
// So ForgiveLeast may forgive a debt while another bucket is full, or a debt that is not the
// least, only if more than 1,024 buckets were drained since then. RefuseNew may refuse a new
// key for the same reason.
package cas
