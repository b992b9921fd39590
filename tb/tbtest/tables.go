package tbtest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var tables = []test{
	{"KeysNeverExceedTheBound", keysNeverExceedTheBound},
	{"TableHoldsMaxKeys", tableHoldsMaxKeys},
	{"FullBucketsAreEvictedFirst", fullBucketsAreEvictedFirst},
	{"FloodDoesNotResetADrainedKey", floodDoesNotResetADrainedKey},
	{"NewKeysOfAnIdleTableEvictFullBuckets", newKeysOfAnIdleTableEvictFullBuckets},
	{"DrainedKeysStayWhileOthersAreFull", drainedKeysStayWhileOthersAreFull},
	{"DrainingFloodUnderRefuseNew", drainingFloodUnderRefuseNew},
	{"DrainingFloodUnderForgiveLeast", drainingFloodUnderForgiveLeast},
	{"ForgivenDebtIsTheOvergrant", forgivenDebtIsTheOvergrant},
	{"RefuseNewReturnsTheWait", refuseNewReturnsTheWait},
	{"EvictedKeyIsNotCreditedTwice", evictedKeyIsNotCreditedTwice},
	{"EvictionOfAFullBucketLosesNothing", evictionOfAFullBucketLosesNothing},
	{"SetLimitChangesWhenABucketIsFull", setLimitChangesWhenABucketIsFull},
	{"FutureReadingHarmsOnlyItsKey", futureReadingHarmsOnlyItsKey},
	{"FutureReadingEvictsOthersAsFull", futureReadingEvictsOthersAsFull},
	{"ResetAfterAFutureReading", resetAfterAFutureReading},
	{"FutureReadingUnderRefuseNew", futureReadingUnderRefuseNew},
	{"IdleKeysAreDropped", idleKeysAreDropped},
	{"ResetFillsTheBucket", resetFillsTheBucket},
}

func keysNeverExceedTheBound(s *suite) {
	const bound, callers = 100, 16
	for _, overflow := range []tb.Overflow{tb.ForgiveLeast, tb.RefuseNew} {
		f := s.new(perSecond(5, 1), tb.WithMaxKeys(bound), tb.WithOverflow(overflow))
		l := skipUnless[hasLen](f)
		var over atomic.Int64
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range 1000 {
					_, _ = f.Allow(context.Background(), fmt.Sprint(c, "/", i))
					if n := l.Len(); n > bound {
						over.Store(int64(n))
					}
				}
			})
		}
		wg.Wait()
		if n := over.Load(); n > 0 || l.Len() != bound {
			s.Errorf("%v: up to %d keys, %d in the end, want %d", overflow, n, l.Len(), bound)
		}
	}
}

func tableHoldsMaxKeys(s *suite) {
	for _, bound := range []int{1, 2, 1000, 20_000} {
		f := s.new(perSecond(5, 1), tb.WithMaxKeys(bound), tb.WithOverflow(tb.RefuseNew))
		for i := range bound {
			f.granted(strconv.Itoa(i), 5, 0)
		}
		f.refused("one more", 1, 5*time.Second, 0)
		g := s.new(perSecond(5, 1), tb.WithMaxKeys(bound))
		for i := range bound {
			g.granted(strconv.Itoa(i), 5, 0)
		}
		for i := range bound {
			g.refused(strconv.Itoa(i), 1, time.Second, 0)
		}
	}
}

func fullBucketsAreEvictedFirst(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(3), tb.WithOverflow(tb.RefuseNew))
	f.granted("drained", 10, 0)
	f.granted("spent", 2, 8)
	f.granted("touched", 1, 9)
	f.refused("new", 1, time.Second, 0)
	f.granted("touched", 2, 7) // now spent is full first
	f.refused("new", 1, 2*time.Second, 0)
	f.Advance(2 * time.Second)
	f.granted("new", 1, 9)
	f.granted("touched", 1, 8)
	f.granted("drained", 2, 0)
}

func refuseNewReturnsTheWait(s *suite) {
	for _, limit := range limits {
		f := s.new(limit, tb.WithMaxKeys(2), tb.WithOverflow(tb.RefuseNew))
		f.allowN("a", limit.Capacity)
		f.Advance(10)
		f.allowN("b", 1)
		f.Advance(3)
		d := f.allow("new")
		if d.Allowed || d.RetryAfter == tb.Never {
			continue // the bucket of b is full within 3 ns, or not within 292 years
		}
		if l, ok := f.Limiter.(hasPeek); ok {
			if p, err := l.Peek(context.Background(), "new"); err != nil || p != d {
				s.Errorf("limit %+v: Peek = %+v, %v, want %+v", limit, p, err, d)
			}
		}
		if _, ok := f.Limiter.(hasLevel); ok {
			f.levelIs("new", tb.Level{NextToken: d.RetryAfter, Full: d.RetryAfter})
		}
		f.grantedAfter(d.RetryAfter, "new", 1)
	}
}

func evictedKeyIsNotCreditedTwice(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	f.granted("a", 10, 0)
	f.Set(10 * time.Second)
	f.granted("b", 1, 9) // evicts a, which is full
	f.Set(11 * time.Second)
	f.granted("c", 1, 9) // evicts b
	f.Set(5 * time.Second)
	f.refused("a", 1, 7*time.Second, 0) // c is full at 12 s
	f.Set(12 * time.Second)
	f.granted("a", 10, 0)
	f.Set(100 * time.Second)
	f.granted("b", 10, 0)
	f.Set(110 * time.Second)
	f.granted("a", 10, 0) // evicts b at 110 s
	f.Set(210 * time.Second)
	f.granted("b", 10, 0) // and a at 210 s

	g := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
	g.Set(100 * time.Second)
	g.granted("a", 10, 0) // full again at 110 s
	g.Set(200 * time.Second)
	g.granted("b", 1, 9) // evicts a
	g.Set(105 * time.Second)
	g.granted("a", 10, 0) // evicts b in debt; no new bucket waits for b's time of 200 s
	g.Set(110 * time.Second)
	g.refused("a", 1, time.Second, 0) // a was credited up to 110 s before it was evicted
	g.Set(111 * time.Second)
	g.granted("a", 1, 0)

	h := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
	h.granted("a", 10, 0)
	h.Set(5 * time.Second)
	h.granted("b", 10, 0) // evicts a, 5 tokens from full
	h.Set(3 * time.Second)
	h.granted("a", 10, 0)
	h.Set(5 * time.Second)
	h.refused("a", 1, time.Second, 0) // a's debt was forgiven at 5 s
}

// Late calls are decided alike on a key whose full bucket was evicted and on a new key.
func evictionOfAFullBucketLosesNothing(s *suite) {
	for _, later := range []time.Duration{0, 30 * time.Second, 5 * time.Minute} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(100))
		f.granted("a", 10, 0) // full again at 10 s
		f.Set(time.Hour)
		f.granted("b", 1, 9)  // drops a
		f.granted("c", 10, 0) // c stays
		f.Set(10*time.Second + later)
		f.granted("a", 10, 0)
		f.granted("new", 10, 0)
		f.Advance(time.Second)
		f.granted("a", 1, 0)
		f.granted("new", 1, 0)
	}
}

func idleKeysAreDropped(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1000))
	for i := range 100 {
		f.granted("old "+strconv.Itoa(i), 1, 9)
	}
	f.Advance(time.Hour)
	for i := range 100 {
		f.granted("new "+strconv.Itoa(i), 1, 9)
	}
	f.atMostKeys(100) // the new ones
}

func resetFillsTheBucket(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasReset](f)
	l.Reset("new")
	f.granted("a", 10, 0)
	f.granted("b", 10, 0)
	l.Reset("a")
	f.granted("a", 10, 0)
	f.refused("a", 1, time.Second, 0)
	f.refused("b", 1, time.Second, 0)
	f.Set(-5 * time.Second) // the time of the bucket is later, and Reset does not keep it
	l.Reset("a")
	f.granted("a", 10, 0)
	f.Set(0)
	f.granted("a", 5, 0)
	f.refused("a", 1, time.Second, 0)
}
