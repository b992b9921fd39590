package redis

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A lower limit locks no key out: RetryAfter is the time of the new limit.
func loweredLimit(s *simulator) error {
	for _, tt := range []struct {
		old, limit tb.Limit
		tokens     int
		want       tb.Decision
	}{
		{tb.Limit{Capacity: 1000, Tokens: 1000, Per: time.Hour},
			tb.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}, 1000, refused(6*time.Minute, 0)},
		{tb.Limit{Capacity: 10_000, Tokens: 10_000, Per: 24 * time.Hour},
			tb.Limit{Capacity: 5, Tokens: 5, Per: time.Minute}, 10_000, refused(12*time.Second, 0)},
		{perSecond(100, 1), perSecond(5, 1), 20, granted(4)},
		{perSecond(100, 1), perSecond(200, 1), 20, granted(79)},
		{perSecond(10, 1), perSecond(1000, 1), 4, granted(5)}, // another scale
		{perSecond(1000, 1), perSecond(10, 1), 994, granted(5)},
		{perSecond(838_861, 1), perSecond(8_388_610, 10), 1, granted(838_859)}, // as many units
	} {
		const midnight = 1_750_032_000_000_000 // the units of all limits come then
		b := s.bucket("lowered")
		b.take(tt.old, midnight, tt.tokens)
		b.want(tt.limit, midnight, 1, tt.want)
		if retry := uint64(tt.want.RetryAfter.Microseconds()); retry > 0 {
			b.want(tt.limit, midnight+retry-1, 1, refused(1000, 0))
			b.want(tt.limit, midnight+retry, 1, granted(0))
		}
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

// The key of a bucket that is full under its limit stays as long as under the limits before.
func convertedKeyIsKept(s *simulator) error {
	b := s.bucket("kept")
	large, small := perSecond(100, 1), perSecond(10, 1)
	b.want(large, noon, 50, granted(50))
	b.want(small, noon, 1, granted(9))
	b.want(large, noon+49_000_000, 100, refused(90*time.Second, 10))
	b.fill()
	b.want(large, noon, 50, granted(50))
	b.want(small, noon, 11, refused(tb.Never, 10)) // full
	b.want(large, noon+50_000_000, 100, refused(90*time.Second, 10))
	return b.err
}

// Nodes with different limits, and one that is ahead of the others by half a second, are granted
// what the greater capacity allows.
func alternatingLimitsGainNothing(s *simulator) error {
	b := s.bucket("alternate")
	limits := []tb.Limit{perSecond(100, 10), perSecond(7, 10), perSecond(2000, 10)}
	sum := 0
	for i := range uint64(60) {
		for _, limit := range limits {
			now := noon + i*100_000 + i%2*500_000
			n := limit.Capacity
			if i%10 > 0 {
				n = min(n, 16)
			}
			for ; n > 0; n /= 2 {
				if d, _ := b.take(limit, now, n); d.Allowed {
					sum += n
				}
			}
		}
	}
	if most := 100 + 10*7; sum > most || sum < most-20 { // the first caller has a bucket of 100
		b.errorf("%d tokens were granted in 7 s, want nearly %d and no more", sum, most)
	}
	return b.err
}

// An undo gives nothing to a bucket that has been converted since, to and fro, however often.
func undoAfterAChange(s *simulator) error {
	b := s.bucket("undo")
	large, small := perSecond(100, 1), perSecond(10, 1)
	m, err := newLayout(large, 0)
	if err != nil {
		return err
	}
	grant := func(now uint64, tokens int) (undo item) {
		e, before := b.apply(large, now, item{units: m.unitsOf(float64(tokens))})
		if !e.Allowed {
			b.errorf("%d tokens: %+v", tokens, e)
		}
		return undoOf(before, m.unitsOf(float64(tokens)))
	}
	for _, at := range []uint64{noon, noon + 1} { // of the later changes
		b.fill()
		first := grant(noon, 90)
		b.want(small, noon, 5, granted(5))
		second := grant(noon, 3)
		for range 300 { // more than a byte counts
			b.take(small, at, 10)
			b.take(large, at, 100)
			b.apply(large, at, first)
			b.apply(large, at, second)
		}
		b.want(large, at, 3, refused(time.Second-time.Duration(at-noon)*time.Microsecond, 2))
	}
	grant(noon+20_000_000, 17)
	b.apply(large, noon+20_000_000, grant(noon+20_000_000, 5))
	b.want(large, noon+20_000_000, 5, granted(0))
	return b.err
}

// A debt is rounded up.
func debts(s *simulator) error {
	limit := perSecond(10, 1)
	m, err := newLayout(limit, 0)
	if err != nil {
		return err
	}
	b := s.bucket("debt")
	b.apply(limit, noon, item{units: 10 * m.scale})
	b.apply(limit, noon, reservation(m.scale+1, deepest, tb.Never))
	large := perSecond(1000, 1) // 10⁴ units a token
	b.want(large, noon, 1, refused(2*time.Second+100*time.Microsecond, 0))
	return b.err
}
