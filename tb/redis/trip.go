package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// exec takes costs from the bucket of key, in their order, all at one instant, and returns the
// bucket before. layout.take computes the decisions from it. Without costs it removes the bucket.
//
// exec returns when the context or the timeout ends, although the command may still be under way.
// If the costs were not sent yet, they never are. If they reach the server after the deadline of
// the call, they take nothing.
func (l *Limiter) exec(ctx context.Context, key string, costs ...uint64) (state, error) {
	if err := l.admit(ctx); err != nil {
		return state{}, err
	}
	timeout := l.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end))
	}
	c := newCall(costs, l.local()+timeout.Microseconds())
	if err := l.join(key, c); err != nil {
		c.recycle()
		return state{}, err
	}
	c.timer.Reset(timeout)
	var err error
	select {
	case <-c.decided:
	case <-ctx.Done():
		err = contextError(ctx.Err())
	case <-c.timer.C:
		err = timedOut()
	}
	c.timer.Stop()
	if err != nil {
		if l.leave(c) {
			return state{}, err
		}
		<-c.decided
	}
	before, err := c.before, c.err
	c.recycle()
	return before, err
}

// admit returns an error if the limiter is closed or ctx has ended.
func (l *Limiter) admit(ctx context.Context) error {
	if l.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return contextError(err)
	}
	return nil
}

// reserve takes one of the places in flight.
func (l *Limiter) reserve() error {
	select {
	case l.inFlight <- struct{}{}:
	default:
		if l.closed.Load() {
			return ErrClosed
		}
		return &Error{Cause: Busy}
	}
	if l.closed.Load() {
		<-l.inFlight
		return ErrClosed
	}
	return nil
}

// travel makes a trip. It never repeats a command that the server may have executed. The server
// does not take costs whose deadline, by its clock, has passed. If their callers still wait, a
// clock was set, or this is the first trip, and the second attempt knows the server's clock better.
func (l *Limiter) travel(t *trip) {
	// A context that ends would let the client forget a command that is still in its queue.
	ctx := context.Background()
	if len(t.calls[0].costs) == 0 {
		l.counts.trips.Add(1)
		del := l.client.B().Del().Key(t.name).Build()
		var err error
		l.denials.reset(func() { err = l.client.Do(ctx, del).Error() }, t.key)
		if err != nil {
			err = clientError(err)
		}
		l.fail(t, err)
		return
	}
	for range 2 {
		sent := l.local()
		if !l.stay(t, sent) {
			return
		}
		resets := l.denials.of(t.key).Load()
		args := l.arguments(t)
		l.counts.trips.Add(1)
		reply, loaded, err := l.layout.script.run(ctx, l.client, []string{t.name}, args...)
		received := l.local()
		if loaded {
			l.counts.trips.Add(1)
			l.counts.loaded.Add(1)
		}
		if err != nil {
			l.fail(t, clientError(err))
			return
		}
		if reply.IsInt64() {
			now, _ := reply.ToInt64()
			l.counts.stale.Add(1)
			l.offset.learn(sent, received, now)
			continue
		}
		before, err := l.parse(reply, t.items)
		if err != nil {
			l.fail(t, err)
			return
		}
		if l.clock == nil {
			l.offset.learn(sent, received, int64(before.now))
		}
		l.deliver(t, sight{before, sent, received, resets})
	}
	l.fail(t, timedOut())
}

// deliver decides the calls aboard that were in time, from the bucket before them.
func (l *Limiter) deliver(t *trip, w sight) {
	var most uint64 // of the costs that a full bucket can pay
	for _, c := range t.calls {
		if w.now > c.late {
			continue
		}
		c.before = w.state
		for _, cost := range c.costs {
			l.layout.pay(&w.state, cost)
			if cost <= l.layout.capacity {
				most = max(most, cost)
			}
		}
	}
	l.remember(t.key, w, most) // before a caller knows
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	n := 0
	for _, c := range t.calls {
		if w.now > c.late {
			t.calls[n] = c
			n++
		} else {
			c.arrive(nil)
		}
	}
	t.calls = t.calls[:n]
}

// fail decides all calls aboard.
func (l *Limiter) fail(t *trip, err error) {
	l.trips.mu.Lock()
	defer l.trips.mu.Unlock()
	for _, c := range t.calls {
		c.arrive(err)
	}
	t.calls = t.calls[:0]
}

func timedOut() error { return &Error{Timeout, context.DeadlineExceeded} }

// arguments returns the arguments of the script: the costs with deadlines by the server's clock, or
// the costs and the time.
func (l *Limiter) arguments(t *trip) []string {
	args := t.args[:1]
	latest := int64(0)
	for _, c := range t.calls {
		c.late = noDeadline
		latest = max(latest, c.deadline)
	}
	if l.clock == nil {
		last := l.offset.server(latest)
		for _, c := range t.calls {
			c.late = uint64(max(0, last-float64(latest-c.deadline)))
		}
	} else {
		args = append(args, strconv.FormatInt(l.clock().UnixMicro(), 10))
	}
	t.items = t.items[:0]
	for _, c := range t.calls {
		for _, cost := range c.costs {
			t.items = append(t.items, item{cost, c.late})
		}
	}
	args[0] = rueidis.BinaryString(l.layout.argument(t.items))
	return args
}

func (l *Limiter) parse(reply rueidis.RedisMessage, items []item) (state, error) {
	text, err := reply.ToString()
	if err != nil {
		return state{}, &Error{Rejected, err}
	}
	s, ok := l.layout.parse(text, items)
	if !ok {
		return state{}, &Error{Rejected, errors.New("the reply has another form")}
	}
	return s, nil
}

// local returns the time since the limiter was made, in µs of the monotonic clock.
func (l *Limiter) local() int64 { return time.Since(l.start).Microseconds() }
