// Package replay feeds access logs through a rate limiter, with the time of the log as
// its clock, and reports what the limiter would have done.
//
// command.go has the flags, and replay.go begins a replay. merge.go takes the requests of all
// inputs by time. A mode finds the client of each (key.go, clients.go), and a queue (queue.go)
// passes it on to the mode: limit.go (with algorithms.go), suggestion.go or policy.go. clients.go,
// habits.go and proxies.go look at whom a limit hits. report.go has the Report, text.go and page.go
// show its sentences and tables (table.go, timeline.go), and export.go has what to do with a
// suggestion.
//
// Every valid line is one call for one key, at the time of the line. A server writes a line when
// the request ends, and may stamp it with the start. The queue puts the requests into the order of
// their times. It does not take one that is too late for that, because by the contract of package
// tb time never moves back. A log with many of them has no answer.
//
// A log may be longer than memory. Options.MaxKeys bounds the table of each limiter and the clients
// that are counted, and the keys of a suggestion and of other algorithms: more are an error. Other
// bounds stand beside their constants, and take at most about 60 MB. The process takes about twice
// as much, because the garbage collector lets the heap grow that far.
package replay
