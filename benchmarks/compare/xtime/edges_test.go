package xtime

import (
	"math"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
)

const s = time.Second

// A call of Wait that cannot wait has the same error.
func TestWaitErrors(t *testing.T) {
	for _, limit := range []rate.Limit{2, 0, -1, rate.Inf} {
		for _, burst := range []int{4, 0, -1} {
			p := newPair(t, limit, burst)
			for _, n := range []int{burst + 1, burst, 0, -1, burst} {
				p.wait(n, s)
			}
		}
	}
}

func TestHighLimits(t *testing.T) {
	for _, limit := range []rate.Limit{1.2e9, 1.25e9, 1.7e9, 4e9, 1e12, 1e18, 1e300, rate.Inf / 2} {
		for _, burst := range []int{1, 2, 5, 100, 1000, 65536, 1 << 20, 1e7, 1 << 30} {
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
	p := newPair(t, rate.Inf, math.MaxInt)
	p.allow(0, math.MaxInt)
	p.reserve(s, math.MaxInt)
}
