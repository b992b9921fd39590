package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// send makes the trips of one errand, which are not the trips of a call on one bucket. It returns
// when ctx or the timeout ends, although the errand may still be under way. deadline is that
// instant in local time.
func (l *shared) send(ctx context.Context, errand func(deadline int64) error) error {
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

// part is what happens to one bucket.
type part struct {
	layout *layout
	name   string // of the key in Redis
	items  []item
}

// together makes the items of several buckets happen at one instant: all of them or none, or each
// by itself. The server's clock has the offset o.
//
// If by that clock the deadline has passed, nothing was taken. Then a clock was set, or this is the
// first trip, and the second attempt knows the server's clock better. While a cluster moves a slot,
// it executes nothing on two keys of which only one has moved. Then together tries again every
// millisecond.
func (l *shared) together(o *offset, deadline int64, all bool, parts []part) (reply, error) {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	for stale := 0; stale < 2; {
		sent := l.local()
		if sent >= deadline {
			break
		}
		late := uint64(max(0, o.server(deadline)))
		r, err := l.run(names, argumentOf(all, parts, late))
		if isTryAgain(err) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return r, err
		}
		o.learn(sent, l.local(), int64(r.now))
		if all && r.now > late {
			l.counts.stale.Add(1)
			stale++
			continue
		}
		return r, nil
	}
	return reply{}, &Error{CauseTimeout, context.DeadlineExceeded}
}

// argumentOf returns the argument of the script.
func argumentOf(all bool, parts []part, deadline uint64) []byte {
	b := make([]byte, 1, 64*len(parts))
	if all {
		b[0] = 1
	}
	for i := range parts {
		b = append(append(b, parts[i].layout.header[:]...), byte(len(parts[i].items)))
		for j := range parts[i].items {
			b = appendItem(b, &parts[i].items[j], deadline)
		}
	}
	return b
}

// remove removes the bucket of key.
func (l *shared) remove(key string) error {
	l.counts.commands.Add(1)
	name := l.name(key)
	del := l.client.B().Del().Key(name).Build()
	if err := l.client.Do(context.Background(), del).Error(); err != nil {
		return l.failure(name, clientError(err))
	}
	return nil
}

// run runs the script, and counts the trips.
func (l *shared) run(names []string, argument []byte) (r reply, err error) {
	l.counts.commands.Add(1)
	// A context that ends would let the client forget a command that is still in its queue.
	message, loaded, err := l.script.run(context.Background(), l.client, names, string(argument))
	if loaded {
		l.counts.commands.Add(1)
		l.counts.loaded.Add(1)
	}
	if err != nil {
		return r, l.failure(names[0], clientError(err))
	}
	if r, err = parse(message.ToString, len(names)); err == nil && r.failure != nil {
		r.failure = l.failure(names[0], r.failure)
	}
	return r, err
}

// failure returns e, the error of a command on a key. If a replica has answered, it closes a
// connection: the replica may have been the master when the connection was made, and the next
// connection may find the new one. The client does not say which of its connections that was, so it
// may take several failures until all are new.
func (l *shared) failure(name string, e *Error) *Error {
	if e.Cause == CauseReadOnly && strings.Contains(e.Err.Error(), "READONLY") {
		// The second command waits until the server has closed the connection.
		quit := func() rueidis.Completed { return l.client.B().Arbitrary("QUIT").Keys(name).Build() }
		l.client.DoMulti(context.Background(), quit(), quit())
	}
	return e
}
