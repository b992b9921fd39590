package xtime

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
	xrate "golang.org/x/time/rate"
)

// pair is a limiter of rate and one of x/time, which must answer alike. Times are after start. With
// a limit and a burst of 0 they are zero values.
type pair struct {
	*testing.T
	start  time.Time
	limit  rate.Limit
	burst  int
	ours   *rate.Limiter
	theirs *xrate.Limiter

	reserved    *rate.Reservation // the last call that took tokens, if it may be cancelled
	theReserved *xrate.Reservation
}

func newPair(t *testing.T, limit rate.Limit, burst int) *pair {
	p := &pair{T: t, start: time.Now(), limit: limit, burst: burst}
	if p.ours, p.theirs = new(rate.Limiter), new(xrate.Limiter); limit != 0 || burst != 0 {
		p.ours, p.theirs = rate.NewLimiter(limit, burst), xrate.NewLimiter(xrate.Limit(limit), burst)
	}
	return p
}

func (p *pair) same(what string, n int, at time.Duration, got, want any) {
	p.Helper()
	if got != want {
		p.Fatalf("limit %v, burst %d: %s of %d after %v: %v, want %v",
			p.limit, p.burst, what, n, at, got, want)
	}
}

// allow compares AllowN, and the tokens before and after it.
func (p *pair) allow(at time.Duration, n int) (ok bool) {
	p.Helper()
	p.tokens(at)
	t := p.start.Add(at)
	ok = p.ours.AllowN(t, n)
	p.same("AllowN", n, at, ok, p.theirs.AllowN(t, n))
	if ok {
		p.reserved = nil
	}
	p.tokens(at)
	return ok
}

func (p *pair) reserve(at time.Duration, n int) {
	p.Helper()
	t := p.start.Add(at)
	ours, theirs := p.ours.ReserveN(t, n), p.theirs.ReserveN(t, n)
	p.same("OK", n, at, ours.OK(), theirs.OK())
	if d := theirs.DelayFrom(t); ours.DelayFrom(t) != d+1 { // that x/time has rounded down
		p.same("DelayFrom", n, at, ours.DelayFrom(t), d)
	}
	if ours.OK() {
		p.reserved, p.theReserved = ours, theirs
	}
	p.tokens(at)
}

// wait compares WaitN with a context that ends after a time, which is too early for a call that
// must sleep.
func (p *pair) wait(n int, within time.Duration) {
	p.Helper()
	wait := func(waitN func(context.Context, int) error) error {
		ctx, cancel := context.WithTimeout(p.Context(), within)
		defer cancel()
		return waitN(ctx, n)
	}
	got, want := wait(p.ours.WaitN), wait(p.theirs.WaitN)
	if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
		p.Fatalf("limit %v, burst %d: WaitN(%d) = %v, want %v", p.limit, p.burst, n, got, want)
	}
}

// cancel cancels the last reservation, if nothing has taken tokens since.
func (p *pair) cancel(at time.Duration) {
	p.Helper()
	if p.reserved == nil {
		return
	}
	p.reserved.CancelAt(p.start.Add(at))
	p.reserved.CancelAt(p.start.Add(at)) // gives nothing back
	p.theReserved.CancelAt(p.start.Add(at))
	p.reserved = nil
	p.tokens(at)
}

func (p *pair) setLimit(at time.Duration, l rate.Limit) {
	p.Helper()
	p.ours.SetLimitAt(p.start.Add(at), l)
	p.theirs.SetLimitAt(p.start.Add(at), xrate.Limit(l))
	p.limit = l
	p.changed(at)
}

func (p *pair) setBurst(at time.Duration, b int) {
	p.Helper()
	p.ours.SetBurstAt(p.start.Add(at), b)
	p.theirs.SetBurstAt(p.start.Add(at), b)
	p.burst = b
	p.changed(at)
}

func (p *pair) changed(at time.Duration) {
	p.Helper()
	p.reserved = nil
	p.same("Limit", 0, at, float64(p.ours.Limit()), float64(p.theirs.Limit()))
	p.same("Burst", 0, at, p.ours.Burst(), p.theirs.Burst())
	p.tokens(at)
}

// tokens compares the tokens, which are exact if x/time has no rounding error.
func (p *pair) tokens(at time.Duration) {
	p.Helper()
	got, want := p.ours.TokensAt(p.start.Add(at)), p.theirs.TokensAt(p.start.Add(at))
	if p.limit > 1e9 || p.burst > 1<<30 { // see the documentation of package rate
		if math.Abs(got-want) <= 2e-6*float64(p.burst) {
			return
		}
	}
	p.same("TokensAt", 0, at, got, want)
}
