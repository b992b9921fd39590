// Package replay feeds access logs through a rate limiter, with the time of the log as
// its clock, and reports what the limit would have done.
//
// # Files
//
// command.go has the flags, and run.go begins a replay. merge.go takes the requests of all inputs
// by time. replayer.go adds each to a queue (queue.go) and decides it when the queue passes it
// on: by the limits (trial.go), by a policy (policy.go), or for a suggestion (suggestion.go).
// report.go makes the Report, and text.go, charts.go and page.go show it.
//
// # Decisions
//
// Every valid line is one call for one key: the limiter is asked for the cost of the request at the
// time of the line. Several files are merged by time: see merger.
//
// A server writes a line when the request ends. Apache stamps it with the start of the request,
// so its lines often step back in time. nginx and Caddy stamp it with the end. A queue puts the
// requests into the order of their times, in which a limiter in that server has met them. A request
// that is too late for the queue is decided on its bucket as it stands, because by the contract of
// package tb time never moves back.
//
// # Bounds
//
// A log may be longer than memory, and have more clients than fit into it. Options.MaxKeys
// bounds the table of each limiter. A part of a key has at most 256 bytes: a longer part is
// replaced by its first bytes and its SHA-256. The rest is bounded too, and is exact as
// long as a log stays within the bounds:
//
//   - The number of keys and the number of refused keys are exact up to 131,072 each. Larger
//     numbers are estimates, within about 1 %. See keyCounter.
//   - A line is in order unless 65,536 later ones are before it, or fewer if keys have more than 64
//     bytes on average. See queue.
//   - 4,096 keys have statistics of their own. With more keys than that, the keys refused
//     most stay and their counts become lower bounds. See ranking.
//   - A page has at most 512 intervals, of whole seconds, and at most 100 keys. See timeline.
//   - A line has at most 1 MiB. A longer line is malformed.
//   - A file is open only while others overlap with it, and takes about 300 kB then. Unpacking
//     zstd also takes its window, at most 128 MiB.
//   - Each of the algorithms that Options.Algorithms names has Options.MaxKeys keys. More are an
//     error.
//   - A suggestion has Options.MaxKeys keys. With more keys, it is an estimate from a sample of
//     them. See package suggest.
//   - 1,024 refused keys of each rule of a policy are counted.
//
// All of this, without the keys of a suggestion and of algorithms, takes at most about 75 MB, and
// far less for most logs. The process takes about twice as much, because the garbage collector lets
// the heap grow that far.
package replay
