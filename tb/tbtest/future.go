package tbtest

import (
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const year = 365 * 24 * time.Hour

// newKeysAreNormal fails the test unless new keys get a burst of ten tokens and then one token a
// second.
func (f *fixture) newKeysAreNormal() {
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

// A bucket whose time is a year ahead is evicted in debt. Other keys do not wait for that time.
func futureReadingHarmsOnlyItsKey(s *suite) {
	for _, others := range []int{0, 1, 50} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(1+others))
		f.granted("early", 1, 9)
		f.Set(year)
		for i := range others { // these will be full after the bucket of future
			f.granted("other "+strconv.Itoa(i), 10, 0)
		}
		f.granted("future", 1, 9)
		f.Set(10 * time.Second)
		f.granted("future", 5, 4)
		f.refused("future", 5, year-9*time.Second, 4)
		f.newKeysAreNormal() // the first of them evicts future
		f.granted("future", 10, 0)
		if l, ok := f.Limiter.(hasStats); ok && l.Stats().EvictedFull != 1 {
			s.Errorf("%+v: want one full bucket evicted, of the key early", l.Stats())
		}
	}

	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
	f.granted("early", 1, 9)
	f.Set(10 * time.Second)
	f.grantedAt(start.Add(year), "future", 1)
	f.newKeysAreNormal()
}

// By a reading that is a year ahead, all buckets are full. If its call evicts a bucket that was
// drained at 0 s, new keys start when that bucket would have been full, and no later.
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
	f.newKeysAreNormal()
}

func resetAfterAFutureReading(s *suite) {
	for _, bound := range []int{1, 100} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
		l := skipUnless[hasReset](f)
		f.granted("early", 1, 9)
		f.Set(year)
		f.granted("future", 1, 9)
		f.Set(10 * time.Second)
		l.Reset("future")
		f.newKeysAreNormal()
		f.granted("future", 10, 0)
		f.Advance(time.Second)
		f.granted("future", 1, 0)
	}
}

// No debt is forgiven, so the key stays until its bucket is full, and C1 holds.
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
