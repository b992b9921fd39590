// Package queue has a worker behind a queue of jobs, such as River or asynq, that sends each
// customer at most one message a second. It blocks for no customer: a job whose turn is not yet
// goes back into the queue until then.
package queue

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

type worker struct {
	customers *ratelimit.Limiter[string]
	send      func(message)
}

type message struct{ customer string }

// snooze puts a job back into its queue: river.JobSnooze(d), or a RetryDelayFunc of asynq.
type snooze time.Duration

func (s snooze) Error() string { return "not before " + time.Duration(s).String() }

func (w *worker) Work(ctx context.Context, m message) error {
	turn, err := w.customers.Reserve(ctx, m.customer, 1)
	switch {
	case err != nil:
		return err
	case !turn.Allowed: // this customer already has one job that waits
		return snooze(turn.RetryAfter)
	case turn.Delay() > 100*time.Millisecond: // do not block a worker for that long
		turn.Cancel()
		return snooze(turn.Delay())
	}
	time.Sleep(turn.Delay())
	w.send(m)
	return nil
}
