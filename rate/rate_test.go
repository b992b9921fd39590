package rate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
)

// The package benchmarks/compare/xtime compares this package with golang.org/x/time/rate. These tests are of
// concurrent callers, of what the package does otherwise, and of what each machine can run.

// Callers share the burst, also if an event costs less than a unit of the bucket.
func TestConcurrentCallers(t *testing.T) {
	const left = 4000
	for _, burst := range []int{left, 1 << 30, math.MaxInt32} {
		lim := rate.NewLimiter(1e-9, burst)
		if burst > left && !lim.AllowN(time.Now(), burst-left) {
			t.Fatalf("burst %d: refused", burst)
		}
		var granted atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range left / 4 {
					if lim.Allow() {
						granted.Add(1)
					}
				}
			})
		}
		callers.Wait()
		if got := granted.Load(); got > left || got < left-1 {
			t.Errorf("burst %d: %d events granted, want %d", burst, got, left)
		}
	}
}

// Each call sees one state, and a cancelled reservation is given back once, while the limiter
// changes.
func TestConcurrentChanges(t *testing.T) {
	var lim rate.Limiter
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 500 {
				lim.Allow()
				r := lim.ReserveN(time.Now(), 2)
				var cancels sync.WaitGroup
				cancels.Go(r.Cancel)
				r.Cancel()
				cancels.Wait()
				_ = lim.Tokens()
			}
		})
	}
	for _, burst := range []int{2, 0, math.MaxInt32, 7, -1, 3} {
		for _, limit := range []rate.Limit{5, 0, 4e9, rate.Inf, 0.1} {
			lim.SetBurst(burst)
			lim.SetLimit(limit)
		}
	}
	callers.Wait()
	lim.SetLimit(1e-9)
	lim.SetBurst(0)
	lim.AllowN(time.Now(), -1<<31) // pays all debt
	if got := lim.Tokens(); got != 0 {
		t.Errorf("%v tokens, want none of a burst of 0", got)
	}
	lim.SetBurst(3)
	lim.AllowN(time.Now(), -3)
	if got := lim.Tokens(); math.Abs(got-3) > 1e-6 {
		t.Errorf("%v tokens, want 3", got)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := rate.NewLimiter(2, 4)
		start := time.Now()
		after := func(want time.Duration, err error, part string) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("after %v, want %v", got, want)
			}
			if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("error %v, want %q", err, part)
			}
		}
		wait := func(within time.Duration, n int) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			return lim.WaitN(ctx, n)
		}
		after(0, wait(1, 4), "")
		after(0, wait(1, 5), "burst 4")
		after(0, wait(2*time.Second-1, 4), "context deadline")
		after(2*time.Second, wait(2*time.Second, 4), "")
		after(2500*time.Millisecond, lim.Wait(t.Context()), "")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if err := lim.WaitN(ctx, 4); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		after(3*time.Second, lim.WaitN(ctx, 1), "canceled")
		for _, n := range []int{1, 0, -1} {
			after(3*time.Second, lim.WaitN(late{t.Context()}, n), "context deadline")
		}
		after(3*time.Second, lim.Wait(t.Context()), "") // the cancelled call took nothing
	})
}

// late is a context whose deadline has passed, and whose timer has not fired.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

// A debt has a bound, which no caller reaches by itself. As in x/time/rate, the zero Reservation is
// one that is not OK.
func TestMostDebt(t *testing.T) {
	const burst = 1 << 30
	lim, now := rate.NewLimiter(1e9, burst), time.Now()
	for range 3 { // one from the bucket, and two of debt
		if !lim.ReserveN(now, burst).OK() {
			t.Fatal("refused")
		}
	}
	for _, r := range []*rate.Reservation{lim.ReserveN(now, 1), new(rate.Reservation)} {
		if r.Cancel(); r.OK() || r.Delay() != rate.InfDuration {
			t.Errorf("OK %t, delay %v, want a refusal", r.OK(), r.Delay())
		}
	}
	lim = rate.NewLimiter(1e-9, 1)
	for range 10 {
		lim.Reserve() // the last one would wait for 317 years
	}
	if err := lim.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "debt") {
		t.Errorf("error %v, want one about the debt", err)
	}
}

// checked is a limiter whose calls must answer as the test wants, at times after start.
type checked struct {
	*testing.T
	*rate.Limiter
	start time.Time
}

func check(t *testing.T, limit rate.Limit, burst int) checked {
	return checked{t, rate.NewLimiter(limit, burst), time.Now()}
}

func (c checked) allow(at time.Duration, n int, want bool, left float64) {
	c.Helper()
	got := c.AllowN(c.start.Add(at), n)
	if tokens := c.TokensAt(c.start.Add(at)); got != want || tokens != left {
		c.Errorf("after %v: AllowN(%d) = %v and %v tokens, want %v and %v",
			at, n, got, tokens, want, left)
	}
}

// reserve reserves n tokens, to use after delay, or InfDuration if they never come.
func (c checked) reserve(
	at time.Duration, n int, want bool, delay time.Duration,
) *rate.Reservation {
	c.Helper()
	r := c.ReserveN(c.start.Add(at), n)
	if got := r.DelayFrom(c.start.Add(at)); r.OK() != want || got != delay {
		c.Errorf("after %v: ReserveN(%d) is %v with a delay of %v, want %v and %v",
			at, n, r.OK(), got, want, delay)
	}
	return r
}

// A limit of 0 or less, or that is not a number, supplies nothing, nor does the zero Limiter.
// Reserve takes tokens that never come, as in x/time/rate. Wait with a deadline does not.
func TestLimitsThatSupplyNothing(t *testing.T) {
	if lim := new(rate.Limiter); lim.Allow() || lim.Wait(t.Context()) == nil || lim.Limit() != 0 {
		t.Error("the zero Limiter grants")
	}
	for _, limit := range []rate.Limit{0, -1, rate.Limit(math.NaN())} {
		synctest.Test(t, func(t *testing.T) {
			c := check(t, limit, 2)
			if c.WaitN(late{t.Context()}, 1) == nil {
				t.Errorf("limit %v: Wait grants after the deadline", limit)
			}
			c.reserve(0, 1, true, 0)
			c.allow(0, 1, true, 0)
			c.allow(time.Hour, 0, true, 0)
			c.allow(time.Hour, 1, false, 0)
			for _, within := range []time.Duration{time.Second, time.Minute, 1000 * time.Hour} {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				err := c.WaitN(ctx, 1)
				if cancel(); err == nil || !strings.Contains(err.Error(), "would exceed") {
					t.Errorf("limit %v: Wait within %v: %v, want an error at once", limit, within, err)
				}
			}
			c.allow(0, 1, false, 0)
			c.reserve(0, 1, true, rate.InfDuration)
			c.allow(time.Hour, 0, false, -1)
		})
	}
}

// Without a rate there is nothing to wait for, whatever the burst is.
func TestLimitInf(t *testing.T) {
	c := check(t, 1, 2)
	c.allow(0, 2, true, 0)
	c.SetLimitAt(c.start, rate.Inf)
	c.allow(0, 5, true, 0)
	c.allow(time.Second, 5, true, 2)
	c.SetBurst(0)
	if err := c.WaitN(t.Context(), 7); err != nil {
		t.Error(err)
	}
}

// A change keeps the tokens, but not those of the time under a limit of 0, and a burst of 0 holds
// none.
func TestChangesKeepTheTokens(t *testing.T) {
	c := check(t, 1, 5)
	c.allow(0, 3, true, 2)
	c.SetBurstAt(c.start.Add(time.Second), 10)
	c.SetLimitAt(c.start.Add(time.Second), 2)
	c.allow(2*time.Second, 3, true, 2)
	c.SetLimitAt(c.start.Add(2*time.Second), 0)
	c.allow(10*time.Second, 0, true, 2)
	c.SetLimitAt(c.start.Add(20*time.Second), 2)
	c.allow(20*time.Second, 3, false, 2)
	large := 1 << 30
	if math.MaxInt > math.MaxInt32 {
		large *= 2 // a bucket with units of two tokens
	}
	c.SetBurstAt(c.start.Add(20*time.Second), large)
	c.allow(20*time.Second, 0, true, 2)
	c.SetBurstAt(c.start.Add(20*time.Second), 0)
	c.allow(30*time.Second, 1, false, 0)
	c.reserve(30*time.Second, 1, false, rate.InfDuration)
	if c.Limit() != 2 || c.Burst() != 0 {
		t.Errorf("limit %v and burst %d, want 2 and 0", c.Limit(), c.Burst())
	}
}

// Some events are a unit of a large bucket. They cost it together.
func TestLargeBursts(t *testing.T) {
	large := int64(1) << 32
	burst := int(large)
	if int64(burst) != large {
		t.Skip("an int has 32 bits")
	}
	c := check(t, 0, burst)
	for range 8 {
		c.AllowN(c.start, 1)
	}
	c.allow(0, 4, true, 1<<32-12)
	c.reserve(0, 4, true, 0).CancelAt(c.start) // gives nothing back, because units are shared
	c.allow(0, 0, true, 1<<32-16)
	c = check(t, 1e9, burst/2)
	c.allow(0, burst/2, true, 0)
	c.allow(time.Second, 0, true, 1e9)
}

// Cancel gives tokens back until the time to use them, up to a burst of 2³⁰.
func TestCancel(t *testing.T) {
	c := check(t, 1, 1<<30)
	c.allow(0, 1<<30, true, 0)
	c.reserve(0, 3, true, 3*time.Second).CancelAt(c.start.Add(3 * time.Second))
	c.allow(3*time.Second, 0, true, 3)
	c.reserve(3*time.Second, 5, true, 2*time.Second).CancelAt(c.start.Add(5*time.Second + 1))
	c.allow(5*time.Second, 0, true, 0)
	c.allow(15*time.Second, 0, true, 10)
	c.reserve(15*time.Second, 5, true, 0).CancelAt(c.start.Add(15 * time.Second))
	c.allow(15*time.Second, 0, true, 10)
}

func TestAllocations(t *testing.T) {
	lim, ctx := rate.NewLimiter(1e9, 1<<30), context.Background()
	for name, call := range map[string]func(){
		"Allow":  func() { lim.Allow() },
		"AllowN": func() { lim.AllowN(time.Now(), 2) },
		"Wait":   func() { _ = lim.Wait(ctx) },
	} {
		if got := testing.AllocsPerRun(100, call); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { lim.Reserve() }); got > 1 {
		t.Errorf("Reserve: %v allocations, want the Reservation alone", got)
	}
}

func TestEvery(t *testing.T) {
	if got := rate.Every(0); got != rate.Inf {
		t.Errorf("%v, want Inf", got)
	}
}

// A token of the bucket is two tokens of the limiter.
func TestTokensGivenBackShortenTheDebt(t *testing.T) {
	now, lim := time.Now(), rate.NewLimiter(2e9, 10)
	lim.ReserveN(now, 10)
	lim.ReserveN(now, 10)
	if d := lim.ReserveN(now, -4).DelayFrom(now); d != 3 {
		t.Errorf("%v, want 3ns", d)
	}
}
