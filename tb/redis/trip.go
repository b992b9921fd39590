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
	costs    []uint64                   // none for a removal
	errand   func(deadline int64) error // instead, or nil
	deadline int64                      // local time in µs
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
	return l.send(ctx, &trip{name: l.name(key), costs: costs})
}

// send makes a trip in the time that ctx and the timeout allow.
func (l *Limiter) send(ctx context.Context, t *trip) (state, error) {
	if err := ctx.Err(); err != nil {
		return state{}, contextError(err)
	}
	timeout := l.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end))
	}
	t.deadline, t.done = l.local()+timeout.Microseconds(), make(chan struct{})
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

// travel makes a trip. It never repeats a command that the server may have executed.
func (l *Limiter) travel(t *trip) (before state, err error) {
	if t.errand != nil {
		return state{}, t.errand(t.deadline)
	}
	// A context that ends would let the client forget a command that is still in its queue.
	ctx := context.Background()
	if len(t.costs) == 0 {
		l.counts.trips.Add(1)
		if err := l.client.Do(ctx, l.client.B().Del().Key(t.name).Build()).Error(); err != nil {
			return state{}, clientError(err)
		}
		return state{}, nil
	}
	err = l.attempt(t.deadline, func() (rueidis.RedisMessage, error) {
		argument := func(deadline float64) []byte { return l.layout.argument(deadline, t.costs) }
		return l.run(l.layout.script, []string{t.name}, l.arguments(t.deadline, argument)...)
	}, func(reply string) (now uint64, ok bool) {
		before, ok = l.layout.parse(reply, t.costs)
		return before.now, ok
	})
	return before, err
}

// attempt runs a script that has a deadline, and gives its reply to parse, which returns the
// server's time.
//
// If the server returns its time, because by its clock the deadline has passed, it has executed
// nothing. Then a clock was set, or this is the first trip, and the second attempt knows the
// server's clock better.
//
// While a cluster moves a slot, it executes nothing on two keys of which only one has moved. Then
// attempt tries again every millisecond.
func (l *Limiter) attempt(
	deadline int64, run func() (rueidis.RedisMessage, error), parse func(string) (uint64, bool),
) error {
	for stale := 0; stale < 2; {
		sent := l.local()
		if sent >= deadline {
			break
		}
		reply, err := run()
		received := l.local()
		if isTryAgain(err) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		if reply.IsInt64() {
			now, _ := reply.ToInt64()
			l.counts.stale.Add(1)
			stale++
			l.offset.learn(sent, received, now)
			continue
		}
		text, err := reply.ToString()
		if err != nil {
			return &Error{Rejected, err}
		}
		now, ok := parse(text)
		if !ok {
			return &Error{Rejected, errors.New("the reply has another form")}
		}
		if l.clock == nil {
			l.offset.learn(sent, received, int64(now))
		}
		return nil
	}
	return &Error{Timeout, context.DeadlineExceeded}
}

// run runs a script, and counts the trips.
func (l *Limiter) run(
	s *script, keys []string, args ...string,
) (reply rueidis.RedisMessage, err error) {
	l.counts.trips.Add(1)
	reply, loaded, err := s.run(context.Background(), l.client, keys, args...)
	if loaded {
		l.counts.trips.Add(1)
		l.counts.loaded.Add(1)
	}
	if err != nil {
		return reply, clientError(err)
	}
	return reply, nil
}

// arguments returns the arguments of a script: the deadline by the server's clock is in the first,
// or the time is the second.
func (l *Limiter) arguments(deadline int64, argument func(float64) []byte) []string {
	if l.clock == nil {
		return []string{rueidis.BinaryString(argument(l.offset.server(deadline)))}
	}
	now := strconv.FormatInt(l.clock().UnixMicro(), 10)
	return []string{rueidis.BinaryString(argument(math.Inf(1))), now}
}

// local returns the time since the limiter was made, in µs of the monotonic clock.
func (l *Limiter) local() int64 { return time.Since(l.start).Microseconds() }
