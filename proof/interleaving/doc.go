// Package interleaving runs the code of tb/cas, lru and tb.TakeAll through every interleaving
// of small programs, and checks that the answers are the answers of tb/mutex in some order.
// Package modelcheck explores the interleavings.
//
// The code is explored as it ships, and once more with tiny maps. In the code that ships a map
// is too large to be replaced in such a small program. The variants with tiny maps differ only
// in constants. With them, programs have one preemption, or two where keys are moved. Six programs
// with millions of states have three on the code that ships. The flag -preempt allows more.
//
// # Checks
//
// In every state, the table has at most MaxKeys keys (C7). Every call returns, and each keeps C4
// and C6:
//
//   - A call whose key is in the table all the time never takes the lock of inserts, even while
//     keys are moved. It takes no lock at all unless it has to move its bucket.
//   - A call that takes nothing, or cannot be granted, waits for no lock.
//
// At the end:
//
//   - No thread waits forever.
//   - Each key is in one small map, where look-ups find it, and has one slot in the order of
//     eviction. No debt was forgiven while the table had a full bucket.
//   - There is an order of the calls that explains their answers, the tokens in the buckets,
//     Stats, and the order in which the table evicts the keys from then on. If one call returned
//     before another began, it comes first in that order. So the calls keep C1 to C3 as tb/mutex
//     does.
//
// # Calls of several steps
//
// A TakeAll is not one call in that order: each check, grant and undo of its documentation is
// one, and other calls may come between them. A call that adds a key to a full table is two.
// The first evicts keys and takes the slot of the new key, and the second inserts the key.
// Hits and calls that take nothing may come between them, because they need not wait for an
// insert. Other inserts may not.
//
// A call that takes nothing may find that a full table refuses its new key. Its answer may be
// milder than the answer of tb/mutex, because stamps may have grown since the table last read
// them: the refusal ends earlier, or the answer is not a refusal. It is harsher only if a stamp has
// decreased and another call has the lock of inserts, which happens in no program.
//
// A Cancel or Settle of a reservation that another goroutine corrects at the same time has no
// effect, and may return before the other call has its effect.
//
// A call that is under way during a SetLimit may be decided by either limit, even after a call that
// has already seen the new limit.
//
// # Not checked
//
// Len and Stats are compared only at the end, because before that they count inserts that are under
// way. The contract does not promise the rank of a key in the order of eviction after a Reset,
// after a charge on it was undone or the limit has changed, nor that an undo or a Cancel gives
// anything back to a bucket that has moved. Wait is not called: it is Reserve and Cancel with a
// timer between them. A call with a reading far in the future does not race a SetLimit. An insert
// that evicts several keys evicts them in one step here, and no call with a late reading comes
// between the evictions.
//
// The checks also run on code with a planted bug, one for each step, and must find it.
package interleaving
