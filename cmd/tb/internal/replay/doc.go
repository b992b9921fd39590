// Package replay feeds access logs through a rate limiter, with the time of the log as
// its clock, and reports what the limit would have done.
//
// # What is decided
//
// Every valid line is one call for one key: the limiter is asked for the cost of the
// request at the time that the line is stamped with. Lines are replayed in the order in
// which they stand in the files, and the files in the order in which they are given.
//
// Servers stamp a line with the begin of a request and write it at its end, so lines
// step back in time all the while. They are not sorted: a limiter in that server would
// have met the requests in about that disorder. Its contract says what becomes of a late
// one: time never moves back, and the request is decided on its bucket as it stands. The
// report says how many lines stepped back, and how far at most; a step of hours means
// that files were given in the wrong order.
//
// # What is bounded
//
// A log may be longer than memory, and have more clients than fit into it. The table of
// each limiter is bounded by Options.MaxKeys, and its memory too: a part of a key has at
// most 256 bytes, and a longer one is replaced by its beginning and its SHA-256. All that is
// kept besides is bounded, and is exact as long as a log stays within these bounds:
//
//   - The number of keys, and of those that were refused: exact up to 131,072 of each,
//     then estimated within about 1 %. See clients.
//   - The keys that were refused most: 4,096 keys have statistics of their own. With
//     more keys than that, those that matter stay and their counts become lower bounds.
//     See top.
//   - The plots: at most 512 intervals, of whole seconds. See timeline.
//   - A line: at most 1 MiB. A longer one is malformed.
//
// Together these take about 50 MB at worst, and far less for most logs. The process takes
// about twice as much, since the garbage collector waits for that.
package replay
