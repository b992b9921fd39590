package tbtest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var waits = []test{
	{"WaitersAreServedOneByOne", waitersAreServedOneByOne},
	{"WaitReturnsAtOnceIfTheBucketCanPay", waitReturnsAtOnceIfTheBucketCanPay},
	{"WaitChecksItsArguments", waitChecksItsArguments},
	{"WaitBeyondTheDeadlineTakesNothing", waitBeyondTheDeadlineTakesNothing},
	{"WaitAfterTheDeadlineTakesNothing", waitAfterTheDeadlineTakesNothing},
	{"CancelledWaitGivesItsSlotBack", cancelledWaitGivesItsSlotBack},
	{"CancelledWaitInTheMiddleKeepsTheOtherSlots", cancelledWaitInTheMiddleKeepsTheOtherSlots},
	{"CancelledWaitersLeaveTheQueue", cancelledWaitersLeaveTheQueue},
	{"WaitBoundsTheQueue", waitBoundsTheQueue},
	{"WaitUnderRefuseNewFailsAtOnce", waitUnderRefuseNewFailsAtOnce},
	{"WaitOnBigCapacities", waitOnBigCapacities},
}

// A bucket of capacity 1 is a leaky bucket: its grants are exactly 1/rate apart, in the order of
// the calls.
func waitersAreServedOneByOne(s *suite) {
	const callers = 64
	for _, limit := range []tb.Limit{
		perSecond(1, 1), perSecond(1, 7), perSecond(1, 999_999_937), {Capacity: 1, Tokens: 1, Per: year},
	} {
		s.inBubble(limit, func(b *bubble) {
			var mu sync.Mutex
			var served []time.Duration
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					if err := b.wait(b.Context(), 1); err != nil {
						b.Errorf("Wait: %v", err)
					}
					mu.Lock()
					defer mu.Unlock()
					served = append(served, b.elapsed())
				})
			}
			wg.Wait()
			for i, at := range served {
				if want := timeFor(limit, i); at != want {
					b.Fatalf("limit %+v: caller %d served at %v, want %v", limit, i, at, want)
				}
			}
		})
	}
}

func waitReturnsAtOnceIfTheBucketCanPay(s *suite) {
	s.inBubble(perSecond(10, 5), func(b *bubble) {
		b.waited(3, 0)
		b.waited(7, 0)
		b.waited(1, time.Second/5)
		b.waited(10, 2200*time.Millisecond)
		time.Sleep(time.Second)
		b.waited(5, 3200*time.Millisecond)
		b.waited(0.25, 3250*time.Millisecond)
		b.refused("a", 1, time.Second/5, 0)
		if l, ok := b.Limiter.(hasStats); ok && l.Stats().Reservations != 6 {
			b.Errorf("%+v, want 6 reservations", l.Stats())
		}
	})
}

func waitChecksItsArguments(s *suite) {
	s.inBubble(perSecond(10, 5), func(b *bubble) {
		for range 2 {
			for _, cost := range []float64{0, -1, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
				if err := b.wait(b.Context(), cost); !errors.Is(err, tb.ErrInvalidCost) {
					b.Errorf("Wait(%v): %v, want ErrInvalidCost", cost, err)
				}
			}
			for _, cost := range []float64{10.25, 1 << 30, math.MaxFloat64} {
				b.failed(b.wait(b.Context(), cost), tb.Never, false)
				ctx, cancel := context.WithTimeout(b.Context(), time.Second)
				b.failed(b.wait(ctx, cost), tb.Never, false)
				cancel()
			}
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			if err := b.wait(ctx, 1); !errors.Is(err, context.Canceled) {
				b.Errorf("with a cancelled context: %v, want context.Canceled", err)
			}
			if b.elapsed() != 0 {
				b.Fatalf("the calls took %v", b.elapsed())
			}
			b.granted("a", 5, b.remaining("a")-5) // none of them took a token
		}
	})
}

func waitBeyondTheDeadlineTakesNothing(s *suite) {
	s.inBubble(perSecond(10, 4), func(b *bubble) {
		b.granted("a", 10, 0)
		for _, early := range []time.Duration{1, time.Millisecond, 499 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond-early)
			b.failed(b.wait(ctx, 2), 500*time.Millisecond, true)
			cancel()
		}
		if b.elapsed() != 0 {
			b.Fatalf("the calls took %v", b.elapsed())
		}
		b.refused("a", 1, time.Second/4, 0) // not in debt
		ctx, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond+1)
		defer cancel()
		if err := b.wait(ctx, 2); err != nil || b.elapsed() != 500*time.Millisecond {
			b.Errorf("Wait returned %v at %v, want no error at 500ms", err, b.elapsed())
		}
		time.Sleep(time.Second)
		if err := b.wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("after the deadline: %v, want context.DeadlineExceeded", err)
		}
		b.granted("a", 4, 0)
	})
}

// late is a context whose deadline has passed, and whose timer has not fired.
type late struct {
	context.Context
	deadline time.Time
}

func (c late) Deadline() (time.Time, bool) { return c.deadline, true }

func waitAfterTheDeadlineTakesNothing(s *suite) {
	s.inBubble(perSecond(10, 4), func(b *bubble) {
		for _, by := range []time.Duration{1, time.Microsecond, year, math.MaxInt64} {
			for _, cost := range []float64{1, 0.5, 10} { // on a new key, and on one in the table
				err := b.wait(late{b.Context(), b.began.Add(-by)}, cost)
				if !errors.Is(err, context.DeadlineExceeded) {
					b.Errorf("%v after the deadline: Wait(%v) = %v, want context.DeadlineExceeded",
						by, cost, err)
				}
			}
			b.granted("a", 2, b.remaining("a")-2)
		}
		if err := b.wait(late{b.Context(), b.began}, 2); err != nil {
			b.Errorf("at the deadline: %v", err)
		}
		b.refused("a", 1, time.Second/4, 0)
	})
}

// sleeper calls Wait in a goroutine. The function that it returns cancels the context of the call
// and returns the error of Wait.
func (b *bubble) sleeper(cost float64) (cancel func() error) {
	ctx, stop := context.WithCancel(b.Context())
	result := make(chan error, 1)
	go func() { result <- b.wait(ctx, cost) }()
	synctest.Wait()
	return func() error {
		stop()
		return <-result
	}
}

func cancelledWaitGivesItsSlotBack(s *suite) {
	s.inBubble(perSecond(10, 2), func(b *bubble) {
		b.granted("a", 8, 2)
		for range 3 {
			cancel := b.sleeper(6) // 4 s
			b.refused("a", 1, 2500*time.Millisecond-b.elapsed(), 0)
			time.Sleep(100 * time.Millisecond)
			if err := cancel(); !errors.Is(err, context.Canceled) {
				b.Fatalf("Wait: %v, want context.Canceled", err)
			}
		}
		b.granted("a", 2, 0)
		cancel := b.sleeper(4)
		time.Sleep(time.Second)
		_ = cancel()
		b.waited(4, 2*time.Second)
		if l, ok := b.Limiter.(hasStats); ok && l.Stats().Cancellations != 4 {
			b.Errorf("%+v, want 4 cancellations", l.Stats())
		}
	})
}

func cancelledWaitInTheMiddleKeepsTheOtherSlots(s *suite) {
	s.inBubble(perSecond(1, 1), func(b *bubble) {
		b.granted("a", 1, 0)
		cancel := b.sleeper(1) // at 1 s
		served := make(chan time.Duration, 1)
		go func() {
			_ = b.wait(b.Context(), 1)
			served <- b.elapsed()
		}()
		synctest.Wait()
		time.Sleep(time.Second / 2)
		_ = cancel()
		b.refused("a", 1, 2500*time.Millisecond, 0)
		if at := <-served; at != 2*time.Second {
			b.Errorf("the other caller was served at %v, want 2s", at)
		}
		b.waited(1, 3*time.Second)
	})
}

// Callers are cancelled, the last one first. The next caller gets the slot of the first.
func cancelledWaitersLeaveTheQueue(s *suite) {
	s.inBubble(perSecond(1, 1), func(b *bubble) {
		b.granted("a", 1, 0)
		var cancels []func() error
		for range 64 {
			cancels = append(cancels, b.sleeper(1))
		}
		time.Sleep(time.Second / 2)
		b.refused("a", 1, 64500*time.Millisecond, 0)
		for _, cancel := range slices.Backward(cancels) {
			if err := cancel(); !errors.Is(err, context.Canceled) {
				b.Fatalf("Wait: %v, want context.Canceled", err)
			}
		}
		b.waited(1, time.Second)
	})
}

// At least two capacities may be waited for. A call beyond the bound of the limiter fails at once.
func waitBoundsTheQueue(s *suite) {
	const callers, capacity = 1000, 1 << 24
	s.inBubble(perSecond(capacity, 1), func(b *bubble) {
		b.granted("a", capacity, 0)
		results := make(chan error, callers)
		for range callers {
			go func() { results <- b.wait(b.Context(), capacity) }()
		}
		synctest.Wait()
		queued := callers - len(results)
		if queued < 2 || queued == callers {
			b.Errorf("%d of %d callers wait, want at least 2 and not all", queued, callers)
		}
		for range callers - queued {
			b.failed(<-results, time.Duration(queued+1)*capacity*time.Second, false)
		}
		// The slot would be at the deadline, so only the debt is in the way.
		slot := time.Duration(queued+1) * capacity * time.Second
		for early, deadline := range map[time.Duration]bool{0: false, time.Microsecond: true} {
			ctx, cancel := context.WithTimeout(b.Context(), slot-early)
			b.failed(b.wait(ctx, capacity), slot, deadline)
			cancel()
		}
		for i := range queued {
			if err := <-results; err != nil || b.elapsed() != time.Duration(i+1)*capacity*time.Second {
				b.Errorf("waiting caller %d: error %v at %v", i, err, b.elapsed())
			}
		}
		b.waited(1, (time.Duration(queued)*capacity+1)*time.Second)
	})
}

func waitUnderRefuseNewFailsAtOnce(s *suite) {
	opts := []tb.Option{tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew)}
	skipUnless[hasLen](s.new(perSecond(10, 1), opts...))
	s.inBubble(perSecond(10, 1), func(b *bubble) {
		b.granted("other", 5, 5)
		b.failed(b.wait(b.Context(), 1), 5*time.Second, false)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		b.failed(b.wait(ctx, 1), 5*time.Second, true)
		if b.elapsed() != 0 {
			b.Fatalf("the calls took %v", b.elapsed())
		}
		time.Sleep(5 * time.Second)
		b.waited(10, 5*time.Second)
	}, opts...)
}

func waitOnBigCapacities(s *suite) {
	limit := perSecond(1<<30, 1_000_000_000)
	s.inBubble(limit, func(b *bubble) {
		for i := range 3 {
			b.waited(1<<30, timeFor(limit, int64(i)<<30))
		}
	})
	s.inBubble(perSecond(83, 1), func(b *bubble) {
		b.waited(83, 0)
		for i := range 3 {
			b.waited(83, time.Duration(i+1)*83*time.Second)
		}
	})
}
