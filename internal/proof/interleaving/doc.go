// Package interleaving runs the code of tb/cas, lru and tb.TakeAll, as it ships, through
// every interleaving of small programs, and checks after each that the answers are those of
// tb/mutex in some order; see internal/proof/modelcheck for how.
//
// The small maps of the table are too large for one to give way to another in so short a
// program. So all is done with tiny maps, too, by code that differs from what ships in
// constants only; there, schedules of three preemptions or more are followed in some of the
// programs.
//
// Checked are: in every state, that there are never more keys in the table than MaxKeys (C7),
// and that what callers have been granted and kept, and what the buckets hold, are within C1;
// for every call, that it returns, and C4 and C6: a call whose key is in the table all the
// time never takes the lock of inserts, though keys are moved meanwhile, and no lock at all
// unless it has to move its bucket, and a call that cannot be granted, or only looks, waits
// for none, whether its key is there or not. At the end, that nobody waits for ever, that no
// token is missing if the clock stood still, that each key is in one small map, where it is
// looked for, and has one place in the order of eviction, that no debt was forgiven while a
// bucket was full, and that what the calls returned, what the buckets hold, Stats, and the
// order in which the keys are evicted from then on are those of an order of the calls in
// which none comes before one that had returned when it began.
//
// A TakeAll is not one call in that order. It is the looks, grants and undoings of its
// documentation, and others may come in between. A call that adds a key to a full table is
// two: in the first, keys are evicted, and the new one's place is taken; in the second, the
// key is there. In between come hits and looks, which need not wait for an insert, but no
// other insert and no Reset. And if a look finds a new key refused by a full table, the
// answer may be milder than that of tb/mutex, since stamps may have grown after the table
// has seen them: an earlier end of the refusal, or none. It is never harsher.
//
// Len and Stats are compared at the end only: in between they count an insert or a Reset
// that is under way. Some things are not promised, and not compared: that a key has its due
// place in the order of eviction after a charge on it was undone; and that anything is given
// back to a bucket that has moved. An insert that evicts several keys does so in one step
// here; nobody looks at them, with a late reading, one after the other.
//
// So that these checks are known to find something, they are made on code with a bug
// planted in each of the steps, too.
package interleaving
