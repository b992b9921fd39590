package rate_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
)

// These tests are of concurrent callers, and of what the package does otherwise than x/time/rate:
// benchmarks/compare/xtime runs its tests on this package, and compares random calls.

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

// Each call sees one state, and Cancel gives back once, while the limiter changes.
func TestConcurrentChanges(t *testing.T) {
	var lim rate.Limiter
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 500 {
				lim.Allow()
				r := lim.ReserveN(time.Now(), 2)
				callers.Go(r.Cancel)
				r.Cancel()
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
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := rate.NewLimiter(2, 4)
		start := time.Now()
		wait := func(ctx context.Context, n int, after time.Duration, part string) {
			t.Helper()
			err := lim.WaitN(ctx, n)
			if got := time.Since(start); got != after || (err == nil) != (part == "") ||
				err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("after %v, error %v, want %v, %q", got, err, after, part)
			}
		}
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		wait(within(1), 4, 0, "")
		wait(within(2*time.Second-1), 4, 0, "context deadline")
		wait(within(2*time.Second), 4, 2*time.Second, "")
		wait(t.Context(), 1, 2500*time.Millisecond, "")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		wait(ctx, 4, 3*time.Second, context.Canceled.Error())
		wait(ctx, 1, 3*time.Second, context.Canceled.Error())
		for _, n := range []int{1, 0, -1} {
			wait(late{t.Context()}, n, 3*time.Second, "context deadline")
		}
		wait(t.Context(), 1, 3*time.Second, "") // the cancelled call took nothing
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
	lim.SetLimit(0) // the bucket is replaced, and the next one would pay its debt too late
	lim.SetLimit(2e-10)
	if err := lim.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "debt") {
		t.Errorf("error %v, want one about the debt", err)
	}
}

// Unused limiters are deeply equal, and may begin at the zero time, or in 300 years.
func TestUnusedLimiters(t *testing.T) {
	now, lim, nan := time.Now(), rate.NewLimiter(1, 1), rate.NewLimiter(rate.Limit(math.NaN()), 1)
	later, far := now.Add(time.Second/2), rate.NewLimiter(1, 1)
	got := []bool{reflect.DeepEqual(lim, far), reflect.DeepEqual(lim, new(rate.Limiter)),
		strings.Contains(nan.WaitN(t.Context(), 2).Error(), "burst 1")}
	lim.SetLimitAt(time.Time{}, 2)
	lim.SetBurstAt(time.Time{}, 4)
	got = append(got, lim.AllowN(now, 4), lim.AllowN(now, 1), lim.AllowN(later, 1))
	lim.SetLimitAt(later, 2) // which a late time follows
	got = append(got, lim.AllowN(now, 0), lim.AllowN(later, 1), nan.AllowN(now, 1), nan.Allow(),
		far.AllowN(now.AddDate(300, 0, 0), 1), far.Allow())
	want := []bool{true, false, true, true, false, true, true, false, true, false, true, false}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
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

// A token of the bucket is two tokens of the limiter.
func TestTokensGivenBackShortenTheDebt(t *testing.T) {
	now, lim := time.Now(), rate.NewLimiter(2e9, 10)
	lim.ReserveN(now, 10)
	lim.ReserveN(now, 10)
	if d := lim.ReserveN(now, -4).DelayFrom(now); d != 3 {
		t.Errorf("%v, want 3ns", d)
	}
}
