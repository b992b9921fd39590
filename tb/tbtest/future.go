package tbtest

import (
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const year = 365 * 24 * time.Hour

// atNormalRate fails the test unless new keys get their burst, and then one token a second.
func (f *fixture) atNormalRate() {
	f.Helper()
	for i := range 3 {
		key := "new " + strconv.Itoa(i)
		f.granted(key, 10, 0)
		for range 3 {
			f.refused(key, 1, time.Second, 0)
			f.Advance(time.Second)
			f.granted(key, 1, 0)
		}
	}
}

// A bucket of a time that is a year ahead, and leaves in debt, holds back no other key.
func futureReadingHoldsBackItsKeyOnly(s *suite) {
	for _, others := range []int{0, 1, 50} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(1+others))
		f.granted("early", 1, 9)
		f.Set(year)
		for i := range others { // they will be full after it
			f.granted("other "+strconv.Itoa(i), 10, 0)
		}
		f.granted("future", 1, 9)
		f.Set(10 * time.Second)
		f.granted("future", 5, 4)
		f.refused("future", 5, year-9*time.Second, 4)
		f.atNormalRate() // the first of them evicts future
		f.granted("future", 10, 0)
		if l, ok := f.Limiter.(statser); ok && l.Stats().EvictedFull != 1 {
			s.Errorf("%+v: want no full bucket evicted but that of early", l.Stats())
		}
	}

	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
	l := as[dater](f)
	f.granted("early", 1, 9)
	f.Set(10 * time.Second)
	d, err := l.AllowAt(start.Add(year), "future", 1)
	if f.check(d, err); !d.Allowed {
		s.Errorf("AllowAt in a year: %+v, want granted", d)
	}
	f.atNormalRate()
}

// By a reading that is a year ahead all buckets are full. When that of one which was
// drained at 0 s is evicted, new keys start when it would have been full, and no later.
func futureReadingEvictsOthersAsFull(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
	f.granted("drained", 10, 0)
	f.Set(year)
	f.granted("future", 1, 9)
	f.Set(time.Second)
	f.granted("drained", 10, 0)
	f.refused("drained", 1, 10*time.Second, 0)
	f.Set(11 * time.Second)
	f.granted("drained", 1, 0)
	f.atNormalRate()
}

func futureReadingThatIsReset(s *suite) {
	for _, bound := range []int{1, 100} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
		l := as[resetter](f)
		f.granted("early", 1, 9)
		f.Set(year)
		f.granted("future", 1, 9)
		f.Set(10 * time.Second)
		l.Reset("future")
		f.atNormalRate()
		f.granted("future", 10, 0)
		f.Advance(time.Second)
		f.granted("future", 1, 0)
	}
}

// Nothing is forgiven, so the key stays until it is full, and C1 holds.
func futureReadingUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	f.granted("early", 1, 9)
	f.Set(year)
	f.granted("future", 4, 6)
	for i := range 100 {
		f.Set(time.Duration(10+i) * time.Second)
		f.refused("new", 1, year-time.Duration(6+i)*time.Second, 0)
	}
	f.granted("future", 6, 0)
	f.refused("future", 1, year+time.Second-109*time.Second, 0)
	f.Set(year + 9*time.Second)
	f.refused("new", 1, time.Second, 0)
	f.refused("future", 10, time.Second, 9)
	f.Advance(time.Second)
	f.granted("new", 10, 0)
	f.refused("future", 1, 10*time.Second, 0)
}
