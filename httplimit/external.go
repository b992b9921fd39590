package httplimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// externalCharge is the charge of a limiter that is not of tb/cas. It can fail, and keeps its
// first error. It is not a part of a pooled call, because a step that is too late may use it after
// the request.
type externalCharge struct {
	tb.Charge
	limit *timeLimit
	err   error
	busy  bool // a Cancel is still under way
}

// newExternalCharge makes a charge of e's cost. The limiter may keep the key, so it gets a copy.
func (e *entry) newExternalCharge(r *http.Request, limit *timeLimit) *externalCharge {
	c := &externalCharge{limit: limit}
	s, key, cost := e.ruleState, strings.Clone(e.key), e.cost
	if s.external != nil {
		c.Charge, c.err = limited(limit, func() (tb.Charge, error) {
			return s.external.Charge(key, cost)
		}, nil)
		return c
	}
	c.Charge = oneShotCharge{context.WithoutCancel(r.Context()), limit.end, s.plain, key, cost}
	return c
}

func (c *externalCharge) Peek(t time.Time) (d tb.Decision, err error) {
	if _, ok := c.Charge.(oneShotCharge); ok {
		return tb.Decision{Allowed: true}, nil
	}
	if charge := c.Charge; c.err == nil {
		d, c.err = limited(c.limit, func() (tb.Decision, error) { return charge.Peek(t) }, nil)
	}
	return clamp(d), c.err
}

// Take takes the tokens. If they are taken after the time limit, they are given back.
func (c *externalCharge) Take(t time.Time) (d tb.Decision, err error) {
	if charge := c.Charge; c.err == nil {
		d, c.err = limited(c.limit, func() (tb.Decision, error) { return charge.Take(t) },
			func(d tb.Decision) {
				if d.Allowed {
					charge.Cancel()
				}
			})
	}
	return clamp(d), c.err
}

// Cancel waits for the limiter as long as the time limit allows. The limiter gives the tokens back
// in any case.
func (c *externalCharge) Cancel() {
	if _, ok := c.Charge.(oneShotCharge); ok {
		return
	}
	charge := c.Charge
	_, err := run(c.limit, func() (struct{}, error) {
		charge.Cancel()
		return struct{}{}, nil
	}, nil)
	c.busy = err != nil
}

// Settle settles the charge of a limiter that has settled before: see rule.checkSettles.
func (c *externalCharge) Settle(actual float64) error {
	charge, ok := c.Charge.(settler)
	if !ok {
		return errors.ErrUnsupported
	}
	_, err := limited(c.limit, func() (struct{}, error) {
		return struct{}{}, charge.Settle(actual)
	}, nil)
	return err
}

// Level returns an error if the limiter reports no levels.
func (c *externalCharge) Level(t time.Time) (tb.Level, error) {
	l, ok := c.Charge.(leveler)
	if !ok || c.err != nil || c.busy {
		return tb.Level{}, errors.ErrUnsupported
	}
	level, err := limited(c.limit, func() (tb.Level, error) { return l.Level(t) }, nil)
	if err != nil {
		return tb.Level{}, err
	}
	level.NextToken, level.Full = max(0, level.NextToken), max(0, level.Full)
	return level, nil
}

// clamp makes the decision of an external limiter safe for header fields, which have no
// negative numbers.
func clamp(d tb.Decision) tb.Decision {
	d.RetryAfter, d.Remaining = max(0, d.RetryAfter), max(0, d.Remaining)
	return d
}

// oneShotCharge is the charge of a limiter that has AllowN only. externalCharge does not call its
// Peek, which cannot know the answer, and its Cancel, which cannot give tokens back.
type oneShotCharge struct {
	ctx     context.Context // without the deadline and the cancellation that the client chose
	end     time.Time       // zero for none
	limiter tb.Limiter
	key     string
	cost    float64
}

func (oneShotCharge) Peek(time.Time) (tb.Decision, error) {
	return tb.Decision{Allowed: true}, nil
}

// Take rounds the cost up to whole tokens.
func (c oneShotCharge) Take(time.Time) (tb.Decision, error) {
	n := math.MaxInt32
	if c.cost < math.MaxInt32 {
		n = int(math.Ceil(c.cost))
	}
	ctx := c.ctx
	if !c.end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.end)
		defer cancel()
	}
	return c.limiter.AllowN(ctx, c.key, n)
}

func (oneShotCharge) Cancel() {}

// timeLimit is how long a request waits for limiters that are not of tb/cas, in all.
type timeLimit struct {
	timeout time.Duration // 0 for none
	end     time.Time     // zero for none
	late    *atomic.Int64 // calls that no request waits for any more
}

// maxLate is how many calls may be late. Above it, calls fail at once, so that a limiter that
// never answers does not cost a goroutine for each request.
const maxLate = 1000

// DefaultTimeout is how long a request waits for limiters that are not of tb/cas.
const DefaultTimeout = time.Second

// timeLimit returns the time limit of the request, which starts at the first call.
func (c *call) timeLimit() *timeLimit {
	if c.limit == nil {
		c.limit = &timeLimit{timeout: c.l.timeout, late: &c.l.late}
		if c.l.timeout > 0 {
			c.limit.end = time.Now().Add(c.l.timeout)
		}
	}
	return c.limit
}

// renewTimeLimit begins the time limit again, after the request has waited for its tokens.
func (c *call) renewTimeLimit() {
	if c.limit != nil && c.l.timeout > 0 {
		c.limit.end = time.Now().Add(c.l.timeout)
	}
}

func (t *timeLimit) error() error {
	return fmt.Errorf("no answer in %v: %w", t.timeout, context.DeadlineExceeded)
}

// limited returns what f returns, or an error at the end of the time limit, or if too many calls
// are late. A late success is handed to undo, which may be nil.
func limited[T any](t *timeLimit, f func() (T, error), undo func(T)) (v T, err error) {
	switch {
	case t.timeout == 0:
		return f()
	case time.Until(t.end) <= 0:
		return v, t.error()
	case t.late.Load() >= maxLate:
		return v, fmt.Errorf("%d calls have no answer: %w", maxLate, context.DeadlineExceeded)
	}
	return run(t, f, undo)
}

type result[T any] struct {
	value    T
	err      error
	panicked any
}

// run is limited for a call that must be made even if it is late already.
func run[T any](t *timeLimit, f func() (T, error), undo func(T)) (v T, err error) {
	if t.timeout == 0 {
		return f()
	}
	done, late := make(chan result[T]), make(chan struct{})
	go func() {
		r := callSafely(f)
		select {
		case done <- r:
		case <-late:
			if undo != nil && r.err == nil {
				callSafely(func() (struct{}, error) {
					undo(r.value)
					return struct{}{}, nil
				})
			}
			t.late.Add(-1)
		}
	}()
	timer := time.NewTimer(time.Until(t.end))
	defer timer.Stop()
	select {
	case r := <-done:
		if r.panicked != nil { // as if the limiter had been called here
			panic(r.panicked)
		}
		return r.value, r.err
	case <-timer.C:
		t.late.Add(1)
		close(late)
		return v, t.error()
	}
}

// callSafely calls f and catches a panic.
func callSafely[T any](f func() (T, error)) (r result[T]) {
	r.err = errors.New("the limiter panicked or ended its goroutine")
	defer func() { r.panicked = recover() }()
	r.value, r.err = f()
	return r
}
