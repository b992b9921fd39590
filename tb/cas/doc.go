// Package cas implements the contract of package tb. A call on a key in the table takes no lock.
//
// One word holds the state of a bucket, and calls advance it by compare-and-swap:
//
//	 63   62                       deficitBits 0
//	+----+--------------------------+---+------------------+
//	|seal| delta: the bucket's time     | deficit: units   |
//	|    |        minus its base        | that it lacks    |
//	+----+------------------------------+------------------+
//	  both in units (a token is 10⁰ to 10⁶ units)
//
// Time is measured in units too, by the supply clock: S(t) is the number of units that the rate
// has supplied by t. A refill at t of a bucket with the time s is therefore a subtraction, max(0,
// deficit − (S(t) − s)). S is one integer function and its differences telescope, so nothing is
// ever rounded away. The base is an immutable field beside the word, and both together are a
// cell. The bucket will be full when base + delta + deficit units are supplied. A refill does not
// change that sum.
//
// A limiter's layout fixes the width of the deficit: enough bits for twice the capacity less one
// unit. The delta has the other bits, at least 32. It spans at least four times the time to fill
// a bucket, and 250 times or more for capacities up to 100 million.
//
// # When the delta runs out
//
// The next grant then seals the word and replaces the cell with a successor at a later base. The
// successor is already charged with the cost, so the replacement is the grant. Only such a call
// allocates on a key in the table, and takes a lock: the lock of one hash bucket of the map, for
// a few instructions. It waits neither for an insert nor for the table to grow. Such a call may
// set the seal and still be refused, if other calls are granted before it.
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
// An insert into a full table corrects the stale stamps of buckets that were used since the order
// of eviction last looked at them: at most 16 in all once it has found a full bucket, and at most
// 1,024 if it finds none. So if more than 1,024 buckets were used since then, ForgiveLeast may
// forgive a debt while another bucket is full, or a debt that is not the least. It also may after
// an Undo, because a stamp that was read before the Undo is too high. RefuseNew may refuse a new
// key for the same reasons.
package cas
