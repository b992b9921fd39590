package tbtest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var costs = []test{
	{"WeightedCallsTakeAllOrNothing", weightedCallsTakeAllOrNothing},
	{"FractionalCostsAreExact", fractionalCostsAreExact},
	{"FractionalCostIsNeverFree", fractionalCostIsNeverFree},
	{"CostAboveCapacityIsRefusedWithNever", costAboveCapacityIsRefusedWithNever},
	{"InvalidCostsChangeNothing", invalidCostsChangeNothing},
	{"PeekReturnsWhatAllowWould", peekReturnsWhatAllowWould},
	{"AllowAtUsesTheGivenReading", allowAtUsesTheGivenReading},
}

func weightedCallsTakeAllOrNothing(s *suite) {
	f := s.new(perSecond(10, 2))
	f.granted("a", 7, 3)
	f.refused("a", 4, time.Second/2, 3)
	f.granted("a", 3, 0)
	f.refused("a", 10, 5*time.Second, 0)
	f.Advance(2500 * time.Millisecond)
	f.refused("a", 6, time.Second/2, 5)
	f.granted("a", 5, 0)
}

// allowCost takes a decimal number of tokens of the key a.
func (f *fixture) allowCost(cost float64) tb.Decision {
	f.Helper()
	d, err := f.AllowN(context.Background(), "a", cost)
	f.check(d, err)
	return d
}

func fractionalCostsAreExact(s *suite) {
	for _, tt := range []struct {
		capacity int
		cost     float64
		fits     int
	}{
		{1, 0.1, 10},
		{1, 0.01, 100},
		{1, 0.000001, 1_000_000},
		{3, 0.3, 10},
		{1, 0.7, 1},
		{7, 0.07, 100},
		{100, 0.1, 1000},
		{1, 0.2, 5},
		{1, 1.0 / 3, 2},
		{5, 2.5, 2},
		{10, 1.1, 9},
		{1000, 0.57, 1754},
		{1_000_000, 0.1, 10_000_000},
	} {
		f := s.new(perSecond(tt.capacity, 1))
		first := 0
		if tt.fits > 10_000 { // take most of them in one call
			first = tt.fits - 1_000
			f.allowCost(float64(first) * tt.cost)
		}
		for i := first; i < tt.fits; i++ {
			if d := f.allowCost(tt.cost); !d.Allowed {
				s.Fatalf("capacity %d: call %d of cost %v refused", tt.capacity, i+1, tt.cost)
			}
		}
		if d := f.allowCost(tt.cost); d.Allowed {
			s.Errorf("capacity %d: more than %d calls of cost %v", tt.capacity, tt.fits, tt.cost)
		}
	}
}

func fractionalCostIsNeverFree(s *suite) {
	f := s.new(perSecond(1, 1))
	if d := f.allowCost(1e-300); !d.Allowed || d.Remaining != 0 {
		s.Errorf("a tiny cost: %+v, want granted with 0 remaining", d)
	}
	f.refused("a", 1, time.Microsecond, 0) // it took a millionth of a token
}

func costAboveCapacityIsRefusedWithNever(s *suite) {
	f := s.new(perSecond(10, 5))
	impossible := []int{11, 1 << 30, math.MaxInt}
	for _, n := range impossible { // the key is new
		f.refused("a", n, tb.Never, 10)
	}
	f.hasKeys(0)
	f.granted("a", 6, 4)
	for _, n := range impossible {
		f.refused("a", n, tb.Never, 4)
	}
	for _, cost := range []float64{10.000001, 1e300, math.MaxFloat64} {
		if d := f.allowCost(cost); d.RetryAfter != tb.Never {
			s.Errorf("AllowN(%v) = %+v, want refused with Never", cost, d)
		}
	}
	f.granted("a", 4, 0)
	f = s.new(perSecond(83, 1))
	for n := 84; n > 0; n *= 2 { // the number of units may overflow
		f.refused("a", n, tb.Never, 83)
	}
}

func invalidCostsChangeNothing(s *suite) {
	f := s.new(perSecond(10, 5))
	f.granted("a", 6, 4)
	for _, cost := range []float64{0, -0.5, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, key := range []string{"a", "new"} {
			d, err := f.AllowN(context.Background(), key, cost)
			if !errors.Is(err, tb.ErrInvalidCost) {
				s.Errorf("AllowN(%v) = %+v, %v; want ErrInvalidCost", cost, d, err)
			}
		}
	}
	f.hasKeys(1)
	f.granted("a", 4, 0)
}

func peekReturnsWhatAllowWould(s *suite) {
	f := s.new(perSecond(3, 1))
	l := skipUnless[hasPeek](f)
	for range 10 {
		var peeked tb.Decision
		for range 3 {
			d, err := l.Peek(context.Background(), "a")
			f.check(d, err)
			peeked = d
		}
		if d := f.allow("a"); d != peeked {
			s.Fatalf("Peek = %+v, Allow = %+v", peeked, d)
		}
		f.Advance(time.Second / 3)
	}
	f.check(l.Peek(context.Background(), "new"))
	f.hasKeys(1)
}

func allowAtUsesTheGivenReading(s *suite) {
	f := s.new(perSecond(2, 1))
	l := skipUnless[hasAllowAt](f)
	for _, tt := range []struct {
		at      time.Duration
		n       int
		allowed bool
		retry   time.Duration
	}{
		{0, 2, true, 0},
		{0, 1, false, time.Second},
		{time.Second, 1, true, 0},
		{time.Second / 2, 1, false, 3 * time.Second / 2}, // late: RetryAfter counts from here
		{3 * time.Second, 2, true, 0},
	} {
		d, err := l.AllowAt(start.Add(tt.at), "a", float64(tt.n))
		f.check(d, err)
		if d.Allowed != tt.allowed || d.RetryAfter != tt.retry {
			s.Errorf("AllowAt(%v, %d) = %+v, want %v, %v", tt.at, tt.n, d, tt.allowed, tt.retry)
		}
	}
}
