package redis

import (
	"context"
	"slices"
	"sync"
	"time"
)

// call is what a caller wants from one bucket, or from several, which then all pay or none. It
// belongs to its caller, and to its queue or batch until that has decided it. Then it is reused.
type call struct {
	node     *node
	parts    []part
	deadline int64 // local time in µs: the timeout of the limiter, or the end of the context
	timer    *time.Timer

	late  uint64 // the deadline that the script got
	stage stage  // under the lock of pending

	granted bool  // the first item of each part
	held    bool  // a bucket was held, or reset
	lost    error // why a bucket could not be changed
	err     error
	decided chan struct{} // receives when the parts and err are valid
}

// part is what a call wants from one bucket: at least one item, and exactly one if the call has
// several parts.
type part struct {
	limiter *shared
	layout  *layout
	key     string
	name    string // of the key in Redis; may be empty if the call has one part
	items   []item
	before  state // the bucket before the items
}

type stage int

const (
	waiting stage = iota // in its queue or batch
	decided              // by a batch
	left                 // returns without the decision of a batch
)

var callPool = sync.Pool{New: func() any {
	return &call{decided: make(chan struct{}, 1), timer: time.NewTimer(0)}
}}

// grace is how long a call waits for its reply if the timer of its timeout is late by more than
// this. Then this process did not run, and the reply may be in its socket.
const grace = 2 * time.Millisecond

// call makes the items happen to the bucket of key, in their order, all at one instant, and returns
// the bucket before. layout.apply computes the results from it.
func (l *shared) call(
	ctx context.Context, m *layout, key string, items ...item,
) (before state, err error) {
	c := callPool.Get().(*call)
	c.add(l, m, key, "", items...)
	if err := l.exec(ctx, c); err != nil {
		return before, err
	}
	before = c.parts[0].before
	c.reuse()
	return before, nil
}

func (c *call) reuse() {
	c.parts = c.parts[:0]
	callPool.Put(c)
}

func (c *call) add(l *shared, m *layout, key, name string, items ...item) {
	n := len(c.parts)
	c.parts = slices.Grow(c.parts, 1)[:n+1]
	p := &c.parts[n]
	p.limiter, p.layout, p.key, p.name, p.items = l, m, key, name, append(p.items[:0], items...)
}

// exec makes the items of c happen under the guard of the breaker. After an error, a batch may
// still have c.
//
// exec returns when the context or the timeout ends, although the command may still be under way. A
// lone call, whose caller sends it, returns with the reply or at the timeout. If the items were not
// sent yet, they never are. If they reach the server after the deadline of the call, they take
// nothing.
func (l *shared) exec(ctx context.Context, c *call) error {
	for i := range c.parts {
		if err := c.parts[i].limiter.admit(ctx); err != nil {
			c.reuse()
			return err
		}
	}
	n := l.node(c.parts[0].key)
	opened, err := n.breaker.enter(l.local())
	if err != nil && !l.leases.closed.Load() { // Close asks anyway
		c.reuse()
		return err
	}
	defer n.breaker.leave(opened)
	c.node, c.stage = n, waiting
	timeout := l.local() + l.timeout.Microseconds()
	c.deadline = timeout
	if end, ok := ctx.Deadline(); ok {
		c.deadline = min(c.deadline, l.local()+time.Until(end).Microseconds())
	}
	b, err := l.join(c, c.deadline == timeout)
	if err != nil {
		return err
	}
	if b != nil {
		l.flushAlone(b)
		<-c.decided
		return c.err
	}
	return l.await(ctx, c, timeout)
}

// await returns when c is decided, or when ctx or the timeout ends, which is a local time.
func (l *shared) await(ctx context.Context, c *call, timeout int64) error {
	c.timer.Reset(l.timeout)
	defer c.timer.Stop()
	select {
	case <-c.decided:
		return c.err
	case <-ctx.Done():
		if l.pending.leave(c) {
			return contextError(ctx.Err())
		}
	case <-c.timer.C:
		if l.local()-timeout > grace.Microseconds() {
			time.Sleep(grace)
		}
		if l.pending.leave(c) {
			l.observe(c.node, timeout-l.timeout.Microseconds(), timedOut())
			return timedOut()
		}
	}
	<-c.decided
	return c.err
}

func (l *shared) admit(ctx context.Context) error {
	if l.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return contextError(err)
	}
	return nil
}

func (s *pending) leave(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stage == decided {
		return false
	}
	c.stage = left
	return true
}

func timedOut() *Error { return &Error{CauseTimeout, context.DeadlineExceeded} }
