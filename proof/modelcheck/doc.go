// Package modelcheck is a model checker: it runs a small concurrent program through every
// interleaving of its steps.
//
// The packages atomic, sync and xsync below it replace sync/atomic, sync and xsync in the
// code of the program. Every operation of theirs on a shared variable is a step. The threads
// are coroutines. Before each step a thread waits, and the explorer chooses the thread that
// continues. The explorer tries the choices depth first, and repeats the program from its
// start for each schedule.
//
// # Merging
//
// A program has too many schedules to follow each to its end. Two schedules that lead to
// the same state have the same continuations, so the explorer follows one of them. It
// recognizes a state by a digest of:
//
//   - the value of each variable, the value of each key of a map, and the holder of each
//     lock;
//   - for each thread, the results of its steps in the current call. A thread depends on
//     nothing else, so these results stand for its local variables and its position in the
//     code;
//   - the results of the calls that returned, and, for each call, how many calls of each
//     thread had returned before its first step.
//
// Final may depend on these results and counts and on the values of the variables at the
// end, and on nothing else. Invariant is called after every step, and Returned when a call
// returns. They may depend on the steps of the call, and on earlier states if Recorded returns
// a digest of everything that Invariant has recorded.
//
// Addresses differ between runs, so variables have names. A variable of the set-up is named
// by a number. A variable that a thread makes is named after the results that the thread has
// seen by then. If it has the same name in two schedules, its immutable parts are equal too.
// Pointers are named in the same way. The data that a lock guards is digested when the lock
// is released: by a function, if the lock was given one, or else as the results that its
// holders have seen. Digests have 64 bits. Two of a million different states have the same
// digest with a probability of less than 10⁻⁷.
//
// # Steps that need no choice
//
// Some operations commute with the steps of all other threads. The explorer lets them follow
// the previous step at once, and no outcome is lost:
//
//   - unlocking;
//   - operations on a variable whose maker has published nothing since it made the variable;
//   - reading a variable of the set-up that no schedule writes. The explorer assumes that no
//     schedule writes it. When one does, the exploration starts over.
//
// The set-up must use or label everything that the threads can reach from the start: if the
// first use of a variable is a Store by a thread, the explorer assumes that the thread has
// just made the variable.
//
// # Limits
//
// Steps are sequentially consistent, like the operations of sync/atomic. Data races are left
// to the race detector. The map is assumed to do what its documentation says. A bug that
// needs more threads, calls or keys than the program has is not found. The code must do the
// same whenever its steps have the same results: it may not use the time of day or random
// numbers.
package modelcheck
