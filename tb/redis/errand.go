package redis

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// send makes the trips of one errand, which are not the trips of a call on one bucket. It returns
// when ctx or the timeout ends, although the errand may still be under way. deadline is that
// instant in local time.
func (l *Limiter) send(ctx context.Context, errand func(deadline int64) error) error {
	if err := ctx.Err(); err != nil {
		return contextError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	end, _ := ctx.Deadline()
	if err := l.reserve(ctx); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { // the client may not return in time
		done <- errand(l.local() + time.Until(end).Microseconds())
		l.release()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return contextError(ctx.Err())
	}
}

// runUntil runs a script that has a deadline, for a server whose clock has an offset. It gives the
// reply to parse, which returns the server's time and whether the reply has the right form.
// argument returns the script's argument.
//
// If the server returns its time instead, because by its clock the deadline has passed, it has
// executed nothing. Then a clock was set, or this is the first trip, and the second attempt knows
// the server's clock better.
//
// While a cluster moves a slot, it executes nothing on two keys of which only one has moved. Then
// runUntil tries again every millisecond.
func (l *Limiter) runUntil(
	o *offset, deadline int64, s *script, keys []string,
	argument func(deadline float64) []byte, parse func(reply string) (now uint64, ok bool),
) error {
	for stale := 0; stale < 2; {
		sent := l.local()
		if sent >= deadline {
			break
		}
		args := make([]string, 1, 2)
		if l.clock == nil {
			args[0] = rueidis.BinaryString(argument(o.server(deadline)))
		} else {
			args[0] = rueidis.BinaryString(argument(math.Inf(1)))
			args = append(args, strconv.FormatInt(l.clock().UnixMicro(), 10))
		}
		reply, err := l.run(s, keys, args...)
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
			o.learn(sent, received, now)
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
			o.learn(sent, received, int64(now))
		}
		return nil
	}
	return &Error{Timeout, context.DeadlineExceeded}
}

// remove removes the bucket of key.
func (l *Limiter) remove(key string) error {
	l.counts.trips.Add(1)
	name := l.name(key)
	del := l.client.B().Del().Key(name).Build()
	if err := l.client.Do(context.Background(), del).Error(); err != nil {
		return l.failure(name, err)
	}
	return nil
}

// run runs a script, and counts the trips.
func (l *Limiter) run(s *script, keys []string, args ...string) (rueidis.RedisMessage, error) {
	l.counts.trips.Add(1)
	// A context that ends would let the client forget a command that is still in its queue.
	reply, loaded, err := s.run(context.Background(), l.client, keys, args...)
	if loaded {
		l.counts.trips.Add(1)
		l.counts.loaded.Add(1)
	}
	if err != nil {
		return reply, l.failure(keys[0], err)
	}
	return reply, nil
}

// failure returns the error of a call on a key from the error of the client. If a replica has
// answered, it closes a connection: the replica may have been the master when the connection was
// made, and the next connection may find the new one. The client does not say which of its
// connections that was, so it may take several failures until all are new.
func (l *Limiter) failure(name string, err error) *Error {
	if isReplica(err) {
		// The second command waits until the server has closed the connection.
		quit := func() rueidis.Completed { return l.client.B().Arbitrary("QUIT").Keys(name).Build() }
		l.client.DoMulti(context.Background(), quit(), quit())
	}
	return clientError(err)
}
