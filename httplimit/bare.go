package httplimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// bareLimiter makes charges of a limiter of WithLimiter, which has AllowN only.
type bareLimiter struct{ tb.Limiter }

func (l bareLimiter) Charge(key string, cost float64) (tb.Charge, error) {
	return &bareCharge{limiter: l.Limiter, key: key, cost: cost}, nil
}

// checkBare returns an error if a rule needs more than AllowN.
func (r *rule) checkBare() error {
	switch {
	case r.tiers != nil:
		return errors.New("tiers need a Store or the limiters of httplimit, and WithLimiter sets others")
	case r.OnLimit == Delay:
		return errors.New("on_limit must be refuse, because a limiter of WithLimiter cannot delay " +
			"(got delay)")
	case r.price.response.inResponse:
		return errors.New("a limiter of WithLimiter cannot settle a cost in the response")
	}
	return nil
}

// bareCharge takes by AllowN. It keeps its error.
type bareCharge struct {
	bareCall
	limiter tb.Limiter
	key     string
	cost    float64
	err     error
}

// bareCall is how the limiter is called.
type bareCall struct {
	ctx  context.Context // of the request, without its deadline and cancellation
	end  time.Time       // of the time limit; zero for none
	late *atomic.Int64   // calls that no request waits for any more
}

// maxLate is how many calls may be late. Above it, calls fail at once, so that a limiter that
// never answers does not cost a goroutine for each request.
const maxLate = 1000

// DefaultTimeout is how long a request waits for limiters that are not of tb/cas.
const DefaultTimeout = time.Second

// newBareCall returns how limiters are called. The time limit of the request starts at its first
// call.
func (c *call) newBareCall() bareCall {
	if c.l.timeout > 0 && c.limitEnd.IsZero() {
		c.limitEnd = time.Now().Add(c.l.timeout)
	}
	return bareCall{context.WithoutCancel(c.r.Context()), c.limitEnd, &c.l.late}
}

// Peek cannot know the answer.
func (*bareCharge) Peek(time.Time) (tb.Decision, error) { return tb.Decision{Allowed: true}, nil }

// Level returns an error, because AllowN reports no level.
func (*bareCharge) Level(time.Time) (tb.Level, error) { return tb.Level{}, errors.ErrUnsupported }

// Cancel cannot give tokens back.
func (*bareCharge) Cancel() {}

// Take rounds the cost up to whole tokens. It returns a decision that is safe for header fields,
// which have no negative numbers.
func (c *bareCharge) Take(time.Time) (d tb.Decision, err error) {
	n := math.MaxInt32
	if c.cost < math.MaxInt32 {
		n = int(math.Ceil(c.cost))
	}
	if d, c.err = c.allow(n); c.err != nil {
		return tb.Decision{}, c.err
	}
	d.RetryAfter, d.Remaining = max(0, d.RetryAfter), max(0, d.Remaining)
	return d, nil
}

// bareAnswer is what a limiter answers.
type bareAnswer struct {
	tb.Decision
	err      error
	panicked any
}

// allow calls the limiter, and returns an error at the end of the time limit, or if too many calls
// are late. The call goes on without the request then.
func (c *bareCharge) allow(n int) (tb.Decision, error) {
	if c.end.IsZero() {
		return c.limiter.AllowN(c.ctx, c.key, n)
	}
	left := time.Until(c.end)
	if left <= 0 {
		return tb.Decision{}, c.tooLate()
	}
	if c.late.Load() >= maxLate {
		return tb.Decision{}, fmt.Errorf("%d calls have no answer: %w", maxLate, context.DeadlineExceeded)
	}
	answered, gone := make(chan bareAnswer), make(chan struct{})
	go func() {
		a := c.callSafely(n)
		select {
		case answered <- a:
		case <-gone:
			c.late.Add(-1)
		}
	}()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case a := <-answered:
		if a.panicked != nil { // as if the limiter had been called here
			panic(a.panicked)
		}
		return a.Decision, a.err
	case <-timer.C:
		c.late.Add(1)
		close(gone)
		return tb.Decision{}, c.tooLate()
	}
}

func (c *bareCharge) tooLate() error {
	return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
}

// callSafely calls the limiter and catches a panic.
func (c *bareCharge) callSafely(n int) (a bareAnswer) {
	ctx, cancel := context.WithDeadline(c.ctx, c.end)
	defer cancel()
	a.err = errors.New("the limiter panicked or ended its goroutine")
	defer func() { a.panicked = recover() }()
	a.Decision, a.err = c.limiter.AllowN(ctx, c.key, n)
	return a
}
