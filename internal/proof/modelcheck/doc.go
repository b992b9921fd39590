// Package modelcheck is a model checker: it runs the code of a small concurrent program
// through every interleaving of its steps.
//
// The packages below it stand in for sync/atomic, sync and xsync. Every operation of
// theirs on a variable that threads share is a step. The threads are coroutines; before
// each step a thread waits, and the explorer chooses who goes on. It goes through the
// choices depth first, and repeats the program from its start for each schedule.
//
// # Merging
//
// There are far too many schedules to follow each. Two that lead to the same state have
// the same continuations, so only one of them is followed from there. The state is known
// by a digest of what it consists of:
//
//   - the value of each variable, what a map has for each key, and who holds a lock;
//   - for each thread, what its steps in the call that it makes have told it so far. A
//     thread depends on nothing else, so this stands for its local variables and for
//     where it is in the code;
//   - what the calls that returned have returned, and how many calls of each thread had
//     returned when a call made its first step. Final may depend on these, and on what
//     the variables hold at the end, but on nothing else; Returned and Invariant are
//     called in every state, and may depend on what the call has done, and on what
//     Invariant has noted of the states before, if Memory says what that is.
//
// Addresses differ between runs. So variables have names: those of the set-up are
// numbered, and one that a thread makes is named after what the thread had seen by then.
// If its name is the same in two schedules, so is what is immutable in it. The name of a
// pointer comes about in the same way. What a lock guards is digested when it is
// released: by a function, if the lock was given one, or else as all that its holders had
// seen. Digests have 64 bits; that two of a million different states have the same one
// has a probability of less than 10⁻⁷.
//
// # Steps that need no choice
//
// Some operations commute with whatever others do, so nothing is lost if they follow the
// step before them at once: unlocking; operations on a variable whose maker has not
// published anything since; and looking at a variable of the set-up that no schedule
// writes. For the last, it is taken that there is no such write until one is met, and
// then the exploration starts over. What the threads can reach from the start has to be
// used, or labelled, in the set-up: a variable that a thread is the first to use, by a
// Store, is taken for one that it just made.
//
// # Limits
//
// Steps are sequentially consistent, as those of sync/atomic are; what the race detector
// finds is not found here. The map is assumed to do what its documentation says. A bug
// that needs more threads, calls or keys than the program has is not found. The code must
// do the same whenever its steps tell it the same: no time of day, no random numbers.
package modelcheck
