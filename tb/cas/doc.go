// Package cas implements the contract of package tb. A call on a key in the table takes no lock.
//
// One word holds the state of a bucket, and calls advance it by compare-and-swap:
//
//	 63   62               deficitBits   deficitBits−1   0
//	+----+------------------------------+------------------+
//	|seal| delta: the bucket's time     | deficit: units   |
//	|    |        minus its base        | that it lacks    |
//	+----+------------------------------+------------------+
//
// Delta and deficit are in units. A token is 10⁰ to 10⁶ units. Time is measured in units too, by
// the supply clock: S(t) is the number of units that the rate has supplied by t. So a bucket
// keeps its time as a value s of S, and a refill at t makes its deficit
//
//	max(0, deficit − (S(t) − s))
//
// The base is a value of S too: about the bucket's time when its cell was made. A cell is the word
// and, beside it, the base, and the owner if it is not 0. These never change. A bucket in debt has
// the unit before its slot as its time, and a deficit of the capacity and one unit.
//
// The delta spans at least four times the time to fill a bucket. If it runs out, the next grant
// seals the word and replaces the cell by a successor at a later base. So does a call after a
// change of the limit or tier, and each change of a held bucket but Cancel. This is a move: it
// allocates, and takes the lock of one hash bucket of the map for a few instructions. It waits
// neither for an insert nor for the table to grow. DESIGN.md has the proofs.
//
// # Memory and eviction
//
// A key takes about 90 bytes and the bytes of its text, a copy of any length, and up to 16 more in
// a tier, while it is held, or once its limit has changed. A bucket that has moved keeps a cell
// from before, with another copy of the key, until an insert corrects its stamp.
//
// The order of eviction ranks buckets by the stamps that it last read. An insert into a full table
// corrects the stale stamps that come first, until it has found a full bucket and made at least 16
// corrections, and in any case after 1,024. If more stamps are stale, ForgiveLeast may forgive a
// debt while another bucket is full, or a debt that is not the least, and RefuseNew may refuse a
// new key. The same can happen after a call that lowers a stamp: a Cancel, a Reset, most of all of
// a long hold, a Settle that gives tokens back, a faster tier or limit.
package cas
