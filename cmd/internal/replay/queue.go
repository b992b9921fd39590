package replay

import (
	"cmp"
	"slices"
)

// The bounds of a queue: its requests, and the bytes of their texts.
const (
	queueRequests = 1 << 17
	queueBytes    = 8 << 20
)

// queue puts requests into the order of their times. Many servers stamp a line with the start of a
// request and write it at the end, so the line of a slow request is behind later ones. A limiter in
// that server has met the requests in the order of their starts.
//
// A request whose line is late by less than half of a queue is passed on in order. The queue does not
// take a later one. Requests of the same time stay in the order of their lines.
type queue struct {
	most int // requests that it holds

	sorted []pending
	behind []pending // each is earlier than one of sorted whose line is before
	texts  []byte    // of both
	spare  []byte    // where the texts that are left over move

	latest int64 // the latest time that was passed on
}

// pending is a request in a queue. Its time is in nanoseconds since 1970. Its text is the key of
// its bucket or, under a policy, what the rules look at. Its path is a hash.
type pending struct {
	time     int64
	cost     float64
	path     uint32
	at, size uint32 // of the text
}

// newQueue returns a queue with room for a number of requests, whose texts are short.
func newQueue(most int) queue {
	const usual = 16 // bytes of the key of an address
	return queue{
		most: most, sorted: make([]pending, 0, most),
		texts: make([]byte, 0, usual*most), spare: make([]byte, 0, usual*most),
	}
}

// takes reports whether a time is not too late: no later request was passed on.
func (q *queue) takes(time int64) bool { return time >= q.latest }

// add adds the request of the next line, whose time it takes. It reports whether the queue is full.
func (q *queue) add(p pending, text []byte) (full bool) {
	p.at, p.size = uint32(len(q.texts)), uint32(len(text))
	q.texts = append(q.texts, text...)
	if n := len(q.sorted); n > 0 && p.time < q.sorted[n-1].time {
		q.behind = append(q.behind, p)
	} else {
		q.sorted = append(q.sorted, p)
	}
	return q.len() >= q.most || len(q.texts) >= queueBytes
}

func (q *queue) text(p pending) []byte { return q.texts[p.at:][:p.size] }

func (q *queue) len() int { return len(q.sorted) + len(q.behind) }

// pass passes the n earliest requests on to decide.
func (q *queue) pass(n int, decide func(p pending, text []byte) error) error {
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
		if err := decide(p, q.text(p)); err != nil {
			return err
		}
	}
	q.spare = q.spare[:0]
	q.sorted, q.behind = q.keep(q.sorted[:0], sorted), q.keep(q.behind[:0], behind)
	q.texts, q.spare = q.spare, q.texts
	return nil
}

// keep appends requests to a list, which may be the beginning of their own, and keeps their texts.
func (q *queue) keep(list, left []pending) []pending {
	for _, p := range left {
		text := q.text(p)
		p.at = uint32(len(q.spare))
		q.spare = append(q.spare, text...)
		list = append(list, p)
	}
	return list
}
