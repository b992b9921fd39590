// Package replay feeds access logs through a rate limiter, with the time of the log as
// its clock, and reports what the limit would have done.
//
// # Files
//
// command.go has the flags, and replay.go begins a replay. merge.go takes the requests of all
// inputs by time. replayer.go adds each to a queue (queue.go), which passes it on to a mode:
// limit.go, algorithms.go, suggestion.go or policy.go. report.go has the Report, and text.go and
// page.go show it.
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
// A log may be longer than memory, and have more clients than fit into it. Options.MaxKeys bounds
// the table of each limiter, and the keys of a suggestion and of each of other algorithms: more are
// an error. A part of a key has at most 256 bytes: a longer part is replaced by its first bytes and
// its SHA-256. Other bounds stand beside their constants: maxDistinct, maxTracked, queueRequests,
// maxBins, maxPathKeys, maxRefused. All of this, without the keys of a suggestion and of
// algorithms, takes at most about 75 MB, and far less for most logs. The process takes about twice
// as much, because the garbage collector lets the heap grow that far.
package replay
