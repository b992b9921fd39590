package replay

import (
	"cmp"
	"slices"
)

// The bounds of a queue: its requests, and the bytes that a policy needs of them.
const (
	queueRequests = 1 << 17
	queueBytes    = 8 << 20
)

// queue puts requests into the order of their times. Many servers stamp a line with the start of a
// request and write it at the end, so the line of a slow request is behind later ones. A limiter in
// that server has met the requests in the order of their starts.
//
// A request whose line is late by less than half of a queue is passed on in order. The queue does
// not take a later one. Requests of the same time stay in the order of their lines.
type queue struct {
	most int // requests that it holds

	sorted []pending
	behind []pending // each is earlier than one of sorted whose line is before
	bytes  int       // in the parts of both

	latest int64 // the latest time that was passed on
}

// pending is a request in a queue. Its time is in nanoseconds since 1970.
type pending struct {
	time   int64
	path   uint32     // a hash
	client *client    // nil under a policy
	group  *PathLimit // nil without --by-path
	parts  string     // what the rules of a policy look at
}

func newQueue(most int) queue { return queue{most: most, sorted: make([]pending, 0, most)} }

// takes reports whether a time is not too late: no later request was passed on.
func (q *queue) takes(time int64) bool { return time >= q.latest }

// add adds the request of the next line, whose time it takes. It reports whether the queue is full.
func (q *queue) add(p pending) (full bool) {
	q.bytes += len(p.parts)
	if n := len(q.sorted); n > 0 && p.time < q.sorted[n-1].time {
		q.behind = append(q.behind, p)
	} else {
		q.sorted = append(q.sorted, p)
	}
	return q.len() >= q.most || q.bytes >= queueBytes
}

func (q *queue) len() int { return len(q.sorted) + len(q.behind) }

func (q *queue) pass(n int, decide func(pending) error) error {
	slices.SortStableFunc(q.behind, func(a, b pending) int { return cmp.Compare(a.time, b.time) })
	sorted, behind := q.sorted, q.behind
	for range n {
		var p pending
		// Of the same time, the one behind has the later line.
		if len(behind) > 0 && (len(sorted) == 0 || behind[0].time < sorted[0].time) {
			p, behind = behind[0], behind[1:]
		} else {
			p, sorted = sorted[0], sorted[1:]
		}
		q.latest = p.time
		q.bytes -= len(p.parts)
		if err := decide(p); err != nil {
			return err
		}
	}
	q.sorted, q.behind = append(q.sorted[:0], sorted...), append(q.behind[:0], behind...)
	return nil
}
