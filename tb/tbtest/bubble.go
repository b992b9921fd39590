package tbtest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// bubble is a limiter with the default clock in a synctest bubble, in which only sleep moves the
// clock.
type bubble struct {
	*fixture
	began time.Time
}

// inBubble runs a test in a bubble. A goroutine that is left behind fails the test.
func (s *suite) inBubble(limit tb.Limit, run func(*bubble), opts ...tb.Option) {
	s.Helper()
	skipUnless[hasWait](s.new(limit, opts...))
	synctest.Test(s.T, func(t *testing.T) {
		l, err := s.newLimiter(limit, opts...)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{suite: &suite{t, s.newLimiter}, Limiter: l, limit: limit}
		run(&bubble{f, time.Now()})
	})
}

func (b *bubble) elapsed() time.Duration { return time.Since(b.began) }

func (b *bubble) wait(ctx context.Context, cost float64) error {
	return b.Limiter.(hasWait).Wait(ctx, "a", cost)
}

// waited fails the test unless Wait returns without an error at the given time since the start of
// the bubble.
func (b *bubble) waited(cost float64, at time.Duration) {
	b.Helper()
	if err := b.wait(b.Context(), cost); err != nil || b.elapsed() != at {
		b.Fatalf("Wait(%v) returned %v at %v, want no error at %v", cost, err, b.elapsed(), at)
	}
}

// failed fails the test unless err is a *tb.WaitError with the given contents.
func (b *bubble) failed(err error, wait time.Duration, deadline bool) {
	b.Helper()
	var w *tb.WaitError
	switch {
	case !errors.As(err, &w):
		b.Fatalf("got error %v, want a *tb.WaitError", err)
	case w.Wait != wait || w.Deadline != deadline:
		b.Fatalf("got error %+v, want a wait of %v and deadline %t", w, wait, deadline)
	case errors.Is(err, context.DeadlineExceeded) != deadline:
		b.Fatalf("error %v is context.DeadlineExceeded: want %t", err, deadline)
	case err.Error() == "":
		b.Fatal("the error has no text")
	}
}
