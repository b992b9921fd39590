package algorithm

import "time"

// leakyBucket is a leaky bucket as a queue. The queue is drained at the rate and holds a burst. A
// request that still fits is granted, and leaves the queue when all before it are drained. Without
// a queue, a leaky bucket as a meter is a token bucket.
//
// Requests leave the queue at an even pace: in any interval of d, at most rate·d and one request.
// The price is a delay of up to a window.
type leakyBucket struct{ empty moment }

func (s *leakyBucket) take(l *Limit, now, cost uint64) Result {
	if cost > l.capacity {
		return Result{}
	}
	leaves := later(s.empty, at(now))
	empty := l.supplied(leaves, cost)
	if l.supplied(at(now), l.capacity).before(empty) {
		return Result{}
	}
	s.empty = empty
	return Result{Granted: true, Delay: time.Duration(leaves.instant() - now)}
}

func (s *leakyBucket) idle(_ *Limit, now uint64) bool { return !at(now).before(s.empty) }

func (s *leakyBucket) heap() int { return 0 }
