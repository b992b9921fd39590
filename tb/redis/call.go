package redis

import (
	"context"
	"sync"
	"time"
)

// call is what a caller wants from one bucket, at least one item. It belongs to its caller, and to
// its queue or trip from join until it is decided. A call that was decided by a trip is reused.
type call struct {
	node     *node
	layout   *layout
	items    []item
	name     string // of the key in Redis; empty without a WithTag
	deadline int64  // local time in µs: the timeout of the limiter, or the end of the context
	timeout  int64  // local time in µs: the timeout of the limiter

	late         uint64 // the deadline that the script got
	place        place  // with the links, under the lock of trips
	older, newer *call  // of the calls that are not decided

	before  state // the bucket before the items
	lost    error // why the bucket could not be changed
	err     error
	decided chan struct{} // receives when before and err are valid
}

type place int

const (
	waiting place = iota // in its queue
	aboard               // of a trip
	arrived              // decided by a trip
	left                 // returns without a trip's decision
)

var callPool = sync.Pool{New: func() any { return &call{decided: make(chan struct{}, 1)} }}

// exec makes the items happen to the bucket of key, in their order, all at one instant, and returns
// the bucket before. layout.apply computes the results from it.
//
// exec returns when the context or the timeout ends, although the command may still be under way.
// If the items were not sent yet, they never are. If they reach the server after the deadline of
// the call, they take nothing.
func (l *shared) exec(
	ctx context.Context, m *layout, key string, items ...item,
) (before state, err error) {
	if err := l.admit(ctx); err != nil {
		return state{}, err
	}
	c := callPool.Get().(*call)
	c.node, c.layout, c.items, c.place = l.node(key), m, append(c.items[:0], items...), waiting
	if l.tag != nil { // it may call the limiter, so it is called without a lock
		c.name = l.name(key)
	}
	c.timeout = l.local() + l.timeout.Microseconds()
	c.deadline = c.timeout
	if end, ok := ctx.Deadline(); ok {
		c.deadline = min(c.deadline, l.local()+time.Until(end).Microseconds())
	}
	if err := l.join(key, c); err != nil {
		return state{}, err
	}
	select {
	case <-c.decided:
	case <-ctx.Done():
		if l.trips.leave(c) {
			return state{}, contextError(ctx.Err())
		}
		<-c.decided
	}
	if c.err != nil { // a trip may still have the call
		return state{}, c.err
	}
	before = c.before
	callPool.Put(c)
	return before, nil
}

// admit returns an error if the limiter is closed or ctx has ended.
func (l *shared) admit(ctx context.Context) error {
	if l.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return contextError(err)
	}
	return nil
}

// add makes c the newest call. The lock of trips is held.
func (s *trips) add(c *call) {
	if c.older = s.newest; c.older == nil {
		s.oldest = c
	} else {
		c.older.newer = c
	}
	s.newest = c
}

// remove is called with the lock held, when c is decided.
func (s *trips) remove(c *call) {
	if c.older == nil {
		s.oldest = c.newer
	} else {
		c.older.newer = c.newer
	}
	if c.newer == nil {
		s.newest = c.older
	} else {
		c.newer.older = c.older
	}
	c.older, c.newer = nil, nil
}

// arrive decides a call that is aboard, and reports whether its caller still waits. The lock of
// trips is held. The caller must be woken without the lock.
func (s *trips) arrive(c *call, err error) bool {
	if c.place == left {
		return false
	}
	s.remove(c)
	c.place, c.err = arrived, err
	return true
}

// leave reports whether c returns without a decision. It reports false if a trip has decided c.
func (s *trips) leave(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.place == arrived || c.place == left {
		return false
	}
	s.remove(c)
	c.place = left
	return true
}

// grace is how long calls wait for their replies if the timer of their timeout is late by more than
// this. Then this process did not run, and the replies may be in its sockets.
const grace = 2 * time.Millisecond

// expire ends the calls whose timeout has passed, and looks again when the next one passes. One
// timer for all calls costs a call less than a timer of its own.
func (l *shared) expire() {
	s := &l.trips
	s.mu.Lock()
	now := l.local()
	if s.oldest != nil && !s.graced && now-s.oldest.timeout > grace.Microseconds() {
		s.graced = true
		s.timer.Reset(grace)
		s.mu.Unlock()
		return
	}
	s.graced = false
	var ended []*call
	for c := s.oldest; c != nil && c.timeout <= now; c = s.oldest {
		s.remove(c)
		c.place, c.err = left, timedOut()
		ended = append(ended, c)
	}
	s.watched = false
	l.watch(now)
	s.mu.Unlock()
	for _, c := range ended {
		l.observe(c.node, c.timeout-l.timeout.Microseconds(), failed, c.err)
	}
	wake(ended)
}

// watch starts the timer for the oldest call. The lock of trips is held.
func (l *shared) watch(now int64) {
	s := &l.trips
	if s.watched || s.oldest == nil {
		return
	}
	s.watched = true
	d := time.Duration(s.oldest.timeout-now+1) * time.Microsecond
	if s.timer == nil {
		s.timer = time.AfterFunc(d, l.expire)
	} else {
		s.timer.Reset(d)
	}
}

// wake lets the callers of calls return that were decided. It must not hold the lock, which they
// need for their next call.
func wake(decided []*call) {
	for _, c := range decided {
		c.decided <- struct{}{}
	}
}

func timedOut() error { return &Error{CauseTimeout, context.DeadlineExceeded} }

// local returns the time since the limiter was made, in µs of the monotonic clock.
func (l *shared) local() int64 { return time.Since(l.start).Microseconds() }
