package xtime

import (
	"math"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
	xrate "golang.org/x/time/rate"
)

const s = time.Second

func TestInf(t *testing.T) {
	for _, burst := range []int{-1, 0, 1, math.MaxInt} {
		p := newPair(t, rate.Inf, burst)
		for _, n := range []int{-1, 0, 1, 1e6, math.MaxInt} {
			p.allow(0, n)
			p.reserve(s, n)
			p.wait(n, s)
		}
	}
	p := newPair(t, 2, 8)
	p.allow(0, 6)
	p.setLimit(s, rate.Inf)
	p.setLimit(s, 2) // at the same time: no token is gained
	p.setLimit(2*s, rate.Inf)
	p.allow(2*s, 100)
	p.setLimit(3*s, 2)
	p.allow(3*s, 9)
	p.allow(3*s, 8)
	p.allow(3*s, 1)
}

func TestNoBurst(t *testing.T) {
	for _, burst := range []int{0, -1, -5, math.MinInt} {
		p := newPair(t, 2, burst)
		for at := range 4 * s / s {
			for _, n := range []int{1, 0, -1, -5, 2, 0} {
				p.allow(at*s, n)
				p.reserve(at*s, n)
			}
			p.wait(1, s)
		}
		if burst == math.MinInt {
			continue // a debt of so many tokens is bounded
		}
		p.setBurst(4*s, 3)
		p.allow(4*s, 1)
		p.allow(5*s, 1)
		p.setBurst(8*s, burst)
		p.allow(8*s, 0)
		p.setBurst(9*s, 4)
		p.allow(9*s, 1)
		p.allow(12*s, 4)
	}
	var zero rate.Limiter
	p := newPair(t, 0, 0)
	p.ours, p.theirs = &zero, new(xrate.Limiter)
	for _, n := range []int{1, 0, -1, 1} {
		p.allow(0, n)
		p.reserve(0, n)
	}
	p.wait(1, s)
	p.changed(0)
	p.setLimit(s, 2)
	p.setBurst(2*s, 3)
	p.allow(2*s, 1)
	p.allow(3*s, 2)
}

// Debt at a limit of 0 is paid when there is a limit again.
func TestNoLimit(t *testing.T) {
	for _, limit := range []rate.Limit{0, -1, rate.Limit(math.Inf(-1))} {
		p := newPair(t, limit, 3)
		p.allow(0, 2)
		p.reserve(s, 2)
		p.allow(s, 1)
		p.allow(s, 0)
		p.wait(1, 9*s) // fails at once
		p.reserve(2*s, 3)
		p.cancel(2 * s)
		p.reserve(2*s, 1)
		p.allow(2*s, -1)
		p.reserve(2*s, -1)
		p.setBurst(3*s, 4)
		p.setLimit(4*s, 2)
		p.reserve(4*s, 1)
		p.allow(8*s, 4)
		p.setLimit(9*s, limit)
		p.allow(1000*s, 2)
		p.allow(1000*s, 1)
	}
}

func TestNothingAndNegativeNumbers(t *testing.T) {
	p := newPair(t, 2, 4)
	p.allow(0, 0)
	p.allow(0, -3) // full already
	p.allow(0, 4)
	p.allow(0, 0)
	p.reserve(0, 3)
	p.allow(0, 0)
	p.reserve(0, 0)
	p.allow(s/2, -1) // pays a part of the debt, and is refused
	p.reserve(s/2, -1)
	p.allow(s/2, -1)
	p.allow(s/2, 1)
	p.allow(s/2, -100)
	p.allow(s/2, 4)
	p.wait(0, s)
	p.wait(5, s)
}

func TestHighLimits(t *testing.T) {
	for _, limit := range []rate.Limit{1.25e9, 4e9, 1e12, 1e18, 1e300, rate.Inf / 2} {
		for _, burst := range []int{1, 2, 5, 1000, 65536, 1 << 20, 1 << 30} {
			p := newPair(t, limit, burst)
			for at := range 10 * s / s {
				p.allow(at*s, burst)
				p.allow(at*s+time.Microsecond, min(burst, 1000))
				p.reserve(at*s+time.Microsecond, burst+1)
			}
			p.setLimit(10*s, 2)
			p.allow(10*s, burst)
			p.setLimit(11*s, limit)
			p.allow(12*s, burst)
		}
	}
	p := newPair(t, 1.25e9, 65536) // 10 Gbit/s, in packets
	sent := 0
	for at := time.Duration(0); at < time.Millisecond; at += 100 {
		if p.ours.AllowN(p.start.Add(at), 1500) {
			sent += 1500
		}
	}
	if most := 1_250_000 + 65536; sent > most || sent < most*99/100 {
		t.Errorf("%d bytes in a millisecond, want %d", sent, most)
	}
}

func TestHighBursts(t *testing.T) {
	for _, burst := range []int{1 << 30, 1<<30 + 1, math.MaxInt32, 1 << 40, math.MaxInt} {
		p := newPair(t, 1<<20, burst)
		for range 5000 {
			p.allow(0, 1)
		}
		p.allow(0, burst)
		p.allow(0, burst/2)
		p.allow(0, burst/2+1)
		if burst == 1<<40 { // 2¹⁰ events are a unit of the bucket
			p.reserve(0, 1<<20)
		}
		const day = 86_400 * s // that supplies some units of the bucket
		p.setBurst(day, 3)
		p.setBurst(day, burst)
		p.allow(day, 1<<20)
	}
	// All of a burst can be taken, event by event, and no more.
	const burst = 1<<30 + 1<<29
	p := newPair(t, 1, burst)
	p.allow(0, burst-1000)
	for range 1000 {
		p.allow(0, 1)
	}
	for range 1000 {
		if p.allow(0, 1) {
			t.Error("granted more than the burst")
		}
	}
	p.allow(0, -1000)
	for range 1000 {
		p.allow(0, 1)
	}
}

func TestManyReservations(t *testing.T) {
	p := newPair(t, 1, 1)
	for range 5000 {
		p.reserve(0, 1)
	}
	p.allow(5000*s, 1)
	p.allow(5001*s, 1)
}

// The time of a clock of a test may be any.
func TestStrangeTimes(t *testing.T) {
	for _, start := range []time.Time{{}, time.Unix(0, 0), time.Unix(1<<40, 0)} {
		p := newPair(t, 2, 3)
		p.start = start
		for at := range 20 * s / s {
			p.allow(at*s, 3)
			p.reserve(at*s, int(at)%3)
		}
	}
}
