// Package interleaving runs the code of tb/cas, lru and tb.TakeAll, as it ships, through
// every interleaving of small programs, and checks after each that the answers are those of
// tb/mutex in some order; see internal/interleave for how.
//
// Checked are: in every state, that there are never more keys than places taken, nor more
// places than MaxKeys (C7), and that what callers have been granted and kept, and what the
// buckets hold, are within C1; for every call, that it returns, and C4 and C6; at the end,
// that nobody waits for ever, that no token is missing if the clock stood still, that keys,
// places and the order of eviction agree, and that what the calls returned, what the
// buckets hold, Stats, and the order in which the keys are evicted from then on are those
// of an order of the calls in which none comes before one that had returned when it began.
//
// A TakeAll is not one call in that order. It is the looks, grants and undoings of its
// documentation, and others may come in between.
//
// Len and Stats are compared at the end only: in between they count an insert or a Reset
// that is under way. Some things are not promised, and not compared: that a table of
// several shards evicts the keys that one of a single shard would; that a key has its due
// place in the order of eviction after a charge on it was undone; and that anything is given
// back to a bucket that has moved.
//
// So that these checks are known to find something, they are made on code with a bug
// planted in each of the steps, too.
package interleaving
