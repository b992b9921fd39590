package redis

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// maxInFlight is the most trips that are under way. When a server does not answer, no more commands
// than these wait in the client, whose queue does not look at a context, and no more than these
// reach the server when it comes back.
const maxInFlight = 256

// trip is one run of the script on one bucket, or the removal of the bucket. The results are valid
// when done is closed.
type trip struct {
	name     string
	costs    []uint64 // none for a removal
	deadline int64    // local time in µs
	done     chan struct{}

	before state // the bucket before the costs
	err    error
}

// exec takes costs from the bucket of key, in their order, all at one instant, and returns the
// bucket before. layout.take computes the decisions from it. Without costs it removes the bucket.
//
// exec returns when the context or the timeout ends, although the command may still be under way.
// If the command reaches the server after that, it takes nothing.
func (l *Limiter) exec(ctx context.Context, key string, costs []uint64) (state, error) {
	if err := ctx.Err(); err != nil {
		return state{}, contextError(err)
	}
	timeout := l.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end))
	}
	t := &trip{
		name: l.name(key), costs: costs, deadline: l.local() + timeout.Microseconds(),
		done: make(chan struct{}),
	}
	if err := l.depart(t); err != nil {
		return state{}, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-t.done:
		return t.before, t.err
	case <-ctx.Done():
		return state{}, contextError(ctx.Err())
	case <-timer.C:
		return state{}, &Error{Timeout, context.DeadlineExceeded}
	}
}

// depart starts a trip in a goroutine of its own, because the client may not return in time.
func (l *Limiter) depart(t *trip) error {
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
	go func() {
		t.before, t.err = l.travel(t)
		close(t.done)
		<-l.inFlight
	}()
	return nil
}

// travel makes a trip. It never repeats a command that the server may have executed. If the server
// returns its time, because by its clock the deadline has passed, it has executed nothing. Then a
// clock was set, or this is the first trip, and the second attempt knows the server's clock better.
func (l *Limiter) travel(t *trip) (state, error) {
	// A context that ends would let the client forget a command that is still in its queue.
	ctx := context.Background()
	if len(t.costs) == 0 {
		l.counts.trips.Add(1)
		if err := l.client.Do(ctx, l.client.B().Del().Key(t.name).Build()).Error(); err != nil {
			return state{}, clientError(err)
		}
		return state{}, nil
	}
	for range 2 {
		sent := l.local()
		if sent >= t.deadline {
			break
		}
		l.counts.trips.Add(1)
		reply, loaded, err := l.layout.script.run(ctx, l.client, t.name, l.arguments(t)...)
		received := l.local()
		if loaded {
			l.counts.trips.Add(1)
			l.counts.loaded.Add(1)
		}
		if err != nil {
			return state{}, clientError(err)
		}
		if reply.IsInt64() {
			now, _ := reply.ToInt64()
			l.counts.stale.Add(1)
			l.offset.learn(sent, received, now)
			continue
		}
		before, err := l.parse(reply, t.costs)
		if err == nil && l.clock == nil {
			l.offset.learn(sent, received, int64(before.now))
		}
		return before, err
	}
	return state{}, &Error{Timeout, context.DeadlineExceeded}
}

// arguments returns the arguments of the script: a deadline by the server's clock, or the time.
func (l *Limiter) arguments(t *trip) []string {
	if l.clock == nil {
		deadline := l.offset.server(t.deadline)
		return []string{rueidis.BinaryString(l.layout.argument(deadline, t.costs))}
	}
	arg := l.layout.argument(math.Inf(1), t.costs)
	return []string{rueidis.BinaryString(arg), strconv.FormatInt(l.clock().UnixMicro(), 10)}
}

func (l *Limiter) parse(reply rueidis.RedisMessage, costs []uint64) (state, error) {
	text, err := reply.ToString()
	if err != nil {
		return state{}, &Error{Rejected, err}
	}
	s, ok := l.layout.parse(text, costs)
	if !ok {
		return state{}, &Error{Rejected, errors.New("the reply has another form")}
	}
	return s, nil
}

// local returns the time since the limiter was made, in µs of the monotonic clock.
func (l *Limiter) local() int64 { return time.Since(l.start).Microseconds() }
