package tbtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var holds = []test{
	{"HoldGrantsNothingBeforeItsEnd", holdGrantsNothingBeforeItsEnd},
	{"HoldHasALevel", holdHasALevel},
	{"HoldsMerge", holdsMerge},
	{"HoldUpToNowDoesNothing", holdUpToNowDoesNothing},
	{"HoldLastsUntilTheOwnTimeOfABucket", holdLastsUntilTheOwnTimeOfABucket},
	{"ReadingAheadEndsAHold", readingAheadEndsAHold},
	{"NothingIsGivenBackBeforeAHoldEnds", nothingIsGivenBackBeforeAHoldEnds},
	{"GivenBackTokensPayTheDebtBehindAHold", givenBackTokensPayTheDebtBehindAHold},
	{"ReservationsWaitBehindAHold", reservationsWaitBehindAHold},
	{"SettleChargesBehindAHold", settleChargesBehindAHold},
	{"HoldInTakeAll", holdInTakeAll},
	{"RefusalHolds", refusalHolds},
	{"RefusalHoldsInTakeAll", refusalHoldsInTakeAll},
	{"RefusalHoldsByWhatItFinds", refusalHoldsByWhatItFinds},
	{"SetLimitMovesNoHold", setLimitMovesNoHold},
	{"SetLimitAfterAHold", setLimitAfterAHold},
	{"ManyChangesDuringAHold", manyChangesDuringAHold},
	{"ResetEndsAHold", resetEndsAHold},
	{"SleepingWaiterObeysAHold", sleepingWaiterObeysAHold},
	{"ConcurrentHoldStopsAllGrants", concurrentHoldStopsAllGrants},
}

var holdsInTables = []test{
	{"HoldUnderRefuseNew", holdUnderRefuseNew},
	{"RefusalByAFullTableHoldsNothing", refusalByAFullTableHoldsNothing},
	{"HoldIsNoReading", holdIsNoReading},
	{"HeldBucketIsEvictedLast", heldBucketIsEvictedLast},
}

type hasHold interface {
	Hold(ctx context.Context, key string, until time.Time) error
}

// hold holds key for a time from now on.
func (f *fixture) hold(key string, d time.Duration) {
	f.Helper()
	if err := skipUnless[hasHold](f).Hold(context.Background(), key, f.Now().Add(d)); err != nil {
		f.Fatalf("Hold(%q) for %v: %v", key, d, err)
	}
}

func holdGrantsNothingBeforeItsEnd(s *suite) {
	for _, spent := range []int{0, 3, 10} { // 0 of a new key
		f := s.new(perSecond(10, 2))
		if spent > 0 {
			f.granted("a", spent, 10-spent)
		}
		f.hold("a", time.Hour)
		for _, t := range []time.Duration{
			0, time.Nanosecond, 30 * time.Minute, -time.Hour, time.Hour - 1, time.Second, time.Hour,
		} {
			f.Set(t)
			f.refused("a", 1, time.Hour-t+time.Second/2, 0)
			f.refused("a", 10, time.Hour-t+5*time.Second, 0)
			f.refused("a", 11, tb.Never, 0)
		}
		f.granted("b", 10, 0)
		f.Set(time.Hour + time.Second/2 - 1)
		f.refused("a", 1, 1, 0)
		f.Advance(1)
		f.granted("a", 1, 0)
		f.Advance(5 * time.Second)
		f.granted("a", 10, 0)
	}
}

func holdHasALevel(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasPeek](f)
	f.hold("a", time.Minute)
	f.levelIs("a", tb.Level{NextToken: 61 * time.Second, Full: 70 * time.Second})
	if d, err := l.Peek(context.Background(), "a"); err != nil || d != refused(61*time.Second, 0) {
		f.Errorf("Peek = %+v, %v, want refused for 61s", d, err)
	}
	if c, ok := f.charge("a", 3).(waitingCharge); ok {
		c.MayWait(tb.Never)
		f.take(c)
		f.levelIs("a", tb.Level{Tokens: -3, NextToken: 64 * time.Second, Full: 73 * time.Second})
		f.Set(time.Minute)
		f.levelIs("a", tb.Level{Tokens: -3, NextToken: 4 * time.Second, Full: 13 * time.Second})
		f.Set(61 * time.Second)
		f.levelIs("a", tb.Level{Tokens: -2, NextToken: 3 * time.Second, Full: 12 * time.Second})
	}
}

func holdsMerge(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 1, 9)
	f.hold("a", 10*time.Second)
	f.hold("a", 5*time.Second)
	f.refused("a", 1, 11*time.Second, 0)
	f.hold("a", 20*time.Second)
	f.refused("a", 1, 21*time.Second, 0)
	f.Advance(4 * time.Second)
	f.hold("a", 4*time.Second)
	f.refused("a", 1, 17*time.Second, 0)
	f.Advance(18 * time.Second) // the hold is over, and the bucket has 2 tokens
	f.hold("a", time.Second)
	f.refused("a", 1, 2*time.Second, 0)
	for _, forever := range []time.Time{time.Unix(1<<40, 0), f.Now().Add(1<<63 - 1)} {
		if err := skipUnless[hasHold](f).Hold(context.Background(), "a", forever); err != nil {
			f.Fatal(err)
		}
		f.refused("a", 1, tb.Never, 0)
	}
}

func holdUpToNowDoesNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasHold](f)
	for _, until := range []time.Time{{}, time.Unix(0, 0), start.Add(-1), start} {
		for _, key := range []string{"a", "new"} {
			if err := l.Hold(context.Background(), key, until); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.hasKeys(0)
	f.granted("a", 3, 7)
	c := f.charge("a", 3)
	f.take(c)
	f.hold("a", 0)
	f.hold("a", -time.Hour)
	c.Cancel()
	f.granted("a", 7, 0)
}

// The bucket has had the supply until its own time, so the hold does not end before it.
func holdLastsUntilTheOwnTimeOfABucket(s *suite) {
	f := s.new(perSecond(10, 1))
	f.Set(10 * time.Second)
	f.granted("a", 3, 7)
	f.Set(0)
	f.hold("a", 5*time.Second)
	f.refused("a", 1, 11*time.Second, 0)
	f.Set(5 * time.Second)
	f.refused("a", 1, 6*time.Second, 0)
	f.Set(11 * time.Second)
	f.granted("a", 1, 0)
	f.refused("a", 1, time.Second, 0)
}

func readingAheadEndsAHold(s *suite) {
	f := s.new(perSecond(10, 1))
	f.hold("a", time.Hour)
	f.grantedAt(f.Now().Add(2*time.Hour), "a", 1)
	f.granted("a", 9, 0) // as the bucket stands
	f.refused("a", 1, 2*time.Hour+time.Second, 0)
}

func nothingIsGivenBackBeforeAHoldEnds(s *suite) {
	for _, giveBack := range []func(*fixture, tb.Reservation, tb.Charge){
		func(_ *fixture, r tb.Reservation, _ tb.Charge) { r.Cancel() },
		func(f *fixture, r tb.Reservation, _ tb.Charge) { f.settle(r, 0) },
		func(_ *fixture, _ tb.Reservation, c tb.Charge) { c.Cancel() },
		func(f *fixture, r tb.Reservation, c tb.Charge) { f.settle(r, 2); c.Cancel() },
	} {
		f := s.new(perSecond(10, 1))
		r := f.reserved("a", 5, 0)
		c := f.charge("a", 4)
		f.take(c)
		f.hold("a", time.Hour)
		giveBack(f, r, c)
		f.refused("a", 1, time.Hour+time.Second, 0)
		f.Set(time.Hour)
		f.refused("a", 1, time.Second, 0)
		f.Advance(time.Second)
		f.granted("a", 1, 0)
	}
}

func givenBackTokensPayTheDebtBehindAHold(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	first, second := f.reserved("a", 5, 5*time.Second), f.reserved("a", 3, 8*time.Second)
	f.hold("a", 3*time.Second)
	f.refused("a", 1, 9*time.Second, 0)
	f.settle(second, 1)
	f.refused("a", 1, 7*time.Second, 0)
	f.hold("a", 4*time.Second) // two tokens of the debt are left then
	f.refused("a", 1, 7*time.Second, 0)
	f.settle(first, 0) // the rest is lost
	f.refused("a", 1, 5*time.Second, 0)
	f.Set(5 * time.Second)
	f.granted("a", 1, 0)

	f.reserved("a", 5, 5*time.Second)
	f.hold("a", time.Minute) // the debt is paid before
	f.refused("a", 1, 61*time.Second, 0)
}

func reservationsWaitBehindAHold(s *suite) {
	f := s.new(perSecond(10, 1))
	f.hold("a", time.Minute)
	f.notReserved("a", 3, 53*time.Second)
	f.Advance(53 * time.Second)
	f.reserved("a", 3, 10*time.Second)
	f.notReserved("a", 1, time.Second)
	c := f.waiting("a", 2, tb.Never)
	f.take(c)
	if c.Delay() != 12*time.Second {
		f.Errorf("a delay of %v, want 12s", c.Delay())
	}
	f.refused("a", 1, 13*time.Second, 0)
	c.Cancel()
	f.refused("a", 1, 11*time.Second, 0)
	f.Advance(7 * time.Second)
	f.refused("a", 1, 4*time.Second, 0)
	f.Advance(4 * time.Second)
	f.granted("a", 1, 0)

	f.hold("a", 2*time.Second)
	r := f.reserved("a", 4, 6*time.Second)
	f.Advance(3 * time.Second)
	r.Cancel() // after the hold, and no other call has taken tokens
	f.granted("a", 1, 0)
}

// The time of a hold is no debt, so a settlement is paid behind it.
func settleChargesBehindAHold(s *suite) {
	f := s.new(perSecond(10, 1))
	r := f.reserved("a", 5, 0)
	q := f.reserved("a", 5, 0)
	f.hold("a", time.Hour)
	f.settle(r, 11)
	f.refused("a", 1, time.Hour+7*time.Second, 0)
	f.settle(q, 11)
	f.refused("a", 1, time.Hour+11*time.Second, 0)
	f.settledAs(22, 2)
}

func holdInTakeAll(s *suite) {
	f := s.new(perSecond(10, 1))
	f.hold("a", time.Minute)
	d := f.takeAll(false, 2, "b", "a")
	if d[0] != granted(8) || d[1] != refused(62*time.Second, 0) {
		f.Errorf("%+v, want the second refused for 62s", d)
	}
	f.takes(f.keeping(2, 5), refused(67*time.Second, 0))
	f.granted("b", 10, 0)
	c := f.charge("d", 4)
	f.take(c)
	f.hold("d", time.Minute)
	f.takeCharges(false, f.charge("b", 1), c)
	f.refused("d", 1, 61*time.Second, 0)
}

// guardedCharge is a charge whose refusal can hold its bucket.
type guardedCharge interface {
	waitingCharge
	keepingCharge
	HoldOnRefusal(d time.Duration)
}

// guarded returns a charge whose refusal holds key for a time.
func (f *fixture) guarded(key string, cost float64, d time.Duration) guardedCharge {
	f.Helper()
	c := chargeAs[guardedCharge](f, key, cost)
	c.HoldOnRefusal(d)
	return c
}

// A refusal holds for the time from its reading. Refusals of a held bucket extend nothing.
func refusalHolds(s *suite) {
	f := s.new(perSecond(10, 1))
	c := f.guarded("a", 3, time.Minute)
	for _, left := range []int{7, 4, 1} {
		f.takes(c, granted(left))
	}
	if d, err := c.Peek(f.Now()); err != nil || d != refused(63*time.Second, 0) {
		s.Fatalf("Peek = %+v, %v, want refused for 63s", d, err)
	}
	f.refused("a", 2, time.Second, 1) // neither a Peek holds, nor a call without HoldOnRefusal
	f.takes(f.guarded("a", 11, time.Minute), refused(tb.Never, 1))
	f.granted("a", 1, 0)
	f.Set(2 * time.Second)
	f.takes(f.guarded("a", 3, 0), refused(time.Second, 2))
	c.Keep(2)
	f.takes(c, refused(65*time.Second, 0))
	c.Keep(0)
	for _, t := range []time.Duration{2 * time.Second, time.Minute, time.Second, 62*time.Second - 1} {
		f.Set(t)
		f.takes(c, refused(65*time.Second-t, 0))
	}
	f.Set(62 * time.Second) // and now it is empty
	f.takes(c, refused(63*time.Second, 0))
	f.Set(125*time.Second - 1)
	f.refused("a", 3, 1, 2)
	f.Advance(1)
	f.takes(c, granted(0))
	f.reserved("a", 5, 5*time.Second) // a debt is behind the hold
	c.HoldOnRefusal(2 * time.Second)
	f.takes(c, refused(8*time.Second, 0))
	f.setLimit(perSecond(20, 2))
	f.takes(c, refused(5*time.Second, 0))
}

// Each charge whose own bucket lacks the tokens holds it, and the others take nothing.
func refusalHoldsInTakeAll(s *suite) {
	f := s.new(perSecond(10, 1))
	all := []tb.Charge{
		f.guarded("a", 3, time.Minute), f.charge("b", 3), f.guarded("c", 3, time.Hour), f.charge("d", 3),
	}
	f.granted("b", 8, 2)
	f.granted("c", 9, 1)
	for range 2 {
		d := f.takeCharges(false, all...)
		if d[0] != granted(7) || d[1] != refused(time.Second, 2) ||
			d[2] != refused(time.Hour+3*time.Second, 0) || d[3] != granted(7) {
			s.Errorf("%+v, want the second and the third refused, for 1s and 1h0m3s", d)
		}
	}
	f.granted("a", 10, 0)
	f.granted("b", 2, 0)
	f.refused("c", 1, time.Hour+time.Second, 0)
	f.granted("d", 10, 0)
}

// changing is a charge whose bucket changes between Peek and what comes next.
type changing struct {
	guardedCharge
	change func()
}

func (c changing) Peek(t time.Time) (tb.Decision, error) {
	defer c.change()
	return c.guardedCharge.Peek(t)
}

func (c changing) Enter(t time.Time) {
	if e, ok := c.guardedCharge.(interface{ Enter(time.Time) }); ok {
		e.Enter(t)
	}
}

// Another caller comes between the Peek of TakeAll and the hold: it counts what the bucket has
// then.
func refusalHoldsByWhatItFinds(s *suite) {
	f := s.new(perSecond(10, 1))
	guarded := f.guarded("a", 3, time.Minute)
	f.granted("a", 8, 2)
	f.take(f.charge("b", 1))
	cancelled := f.charge("c", 6)
	f.take(cancelled)
	f.granted("c", 3, 1)
	c := f.guarded("c", 2, time.Minute)
	f.takeCharges(false, changing{c, cancelled.Cancel}, f.charge("b", 1))
	f.granted("c", 7, 0)
	// All are granted by Peek, and the Take of one refuses.
	f.Advance(time.Second)
	other := f.charge("b", 1)
	empty := func() { f.take(f.charge("a", 3)) }
	f.takeCharges(false, other, changing{guarded, empty})
	f.refused("a", 1, 61*time.Second, 0)
	f.granted("b", 10, 0)
}

// Neither the time of a hold nor the tokens behind it depend on the limit.
func setLimitMovesNoHold(s *suite) {
	for _, to := range []tb.Limit{
		perSecond(10, 100), {Capacity: 10, Tokens: 1, Per: 100 * time.Second}, perSecond(3, 1),
		perSecond(1<<24, 1), perSecond(10, 999_999_937),
	} {
		f := s.new(perSecond(10, 1))
		f.granted("a", 10, 0)
		f.hold("a", time.Hour)
		f.hold("b", time.Hour)
		f.take(f.waiting("a", 5, tb.Never))
		f.Advance(time.Minute)
		f.setLimit(to)
		f.Advance(time.Minute)
		left := 58 * time.Minute
		token := func(n int) time.Duration { return timeFor(to, n) }
		f.refused("a", 1, left+token(6), 0)
		f.refused("b", 1, left+token(1), 0)
		f.Advance(left - 1)
		f.refused("a", 1, 1+token(6), 0)
		f.refused("b", 3, 1+token(3), 0)
		f.Advance(1)
		f.setLimit(perSecond(10, 1))
		f.refused("a", 1, 6*time.Second, 0)
		f.Advance(6 * time.Second)
		f.granted("a", 1, 0)
		f.granted("b", 6, 0)
	}
}

// The supply from the end of a hold on is kept by a change of the limit.
func setLimitAfterAHold(s *suite) {
	f := s.new(perSecond(10, 1))
	f.hold("a", time.Minute)
	f.hold("b", 65*time.Second)
	f.Set(63 * time.Second)
	f.setLimit(perSecond(10, 100))
	f.granted("a", 3, 0)
	f.refused("b", 1, 2*time.Second+time.Second/100, 0)
	f.Set(65*time.Second + 20*time.Millisecond)
	f.setLimit(perSecond(5, 1))
	f.setLimit(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour})
	f.granted("b", 2, 0)
	f.refused("b", 1, time.Hour, 0)
	f.Set(time.Minute) // a late call is decided at the time of the change
	f.hold("a", time.Second)
	f.granted("a", 5, 0)
}

// A hold outlives any number of limits.
func manyChangesDuringAHold(s *suite) {
	for _, tt := range []struct {
		hold, step time.Duration
		changes    int
	}{
		{time.Hour, time.Second, 600}, {24 * time.Hour, time.Second, 10_000}, {24 * time.Hour, 1, 200},
	} {
		f := s.new(perSecond(10, 1))
		f.granted("a", 3, 7)
		f.hold("a", tt.hold)
		f.hold("b", tt.hold)
		f.take(f.waiting("b", 2.5, tb.Never))
		for i := range tt.changes {
			f.Advance(tt.step)
			f.setLimit(perSecond(1+(i+1)%7*5, 1+int64(i+1)%11*97))
			if i%100 == 0 {
				f.allow("a")
				f.allow("b")
			}
		}
		f.setLimit(perSecond(10, 1))
		for _, t := range []time.Duration{-1, 0, time.Second - time.Microsecond} {
			f.Set(tt.hold + t)
			for key, wait := range map[string]time.Duration{"a": time.Second, "b": 3500 * time.Millisecond} {
				d, least := f.allow(key), wait-t-time.Microsecond // less than a unit of the supply
				if d.Allowed || d.RetryAfter <= least || d.RetryAfter > wait-t {
					f.Errorf("%v from the end: %s: %+v, want refused for %v", t, key, d, wait-t)
				}
			}
		}
		f.Set(tt.hold + time.Second)
		f.granted("a", 1, 0)
		f.Advance(2500 * time.Millisecond)
		f.granted("b", 1, 0)
	}
}

func resetEndsAHold(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasReset](f)
	f.hold("a", time.Hour)
	l.Reset("a")
	f.granted("a", 10, 0)
	f.refused("a", 1, time.Second, 0)
	f.hold("a", time.Minute)
	f.refused("a", 1, 61*time.Second, 0)
}

// A caller that sleeps in Wait when a server orders a pause asks again, and is served behind it.
func sleepingWaiterObeysAHold(s *suite) {
	s.inBubble(perSecond(1, 1), func(b *bubble) {
		l := skipUnless[hasHold](b.fixture)
		hold := func(at time.Duration) {
			if err := l.Hold(b.Context(), "a", b.began.Add(at)); err != nil {
				b.Error(err)
			}
		}
		b.waited(1, 0)
		var wg sync.WaitGroup
		wg.Go(func() { b.waited(1, 12*time.Second) })
		wg.Go(func() {
			time.Sleep(time.Second / 2)
			hold(5 * time.Second)
			time.Sleep(4 * time.Second)
			hold(11 * time.Second) // at 1s the waiter has got a slot at 6s
		})
		wg.Go(func() {
			time.Sleep(time.Second / 4)
			ctx, cancel := context.WithTimeout(b.Context(), 3*time.Second)
			defer cancel()
			b.failed(b.wait(ctx, 1), 5*time.Second, true) // its slot at 2s came in the pause
		})
		wg.Wait()
		hold(13 * time.Second) // the debt behind a hold keeps its slot
		wg.Go(func() { b.waited(1, 14*time.Second) })
		time.Sleep(time.Second / 2)
		hold(13500 * time.Millisecond)
		wg.Wait()
	})
}

// No call that begins after Hold has returned is granted.
func concurrentHoldStopsAllGrants(s *suite) {
	for range 50 {
		f := s.new(perSecond(1000, 1_000_000))
		var late atomic.Int64
		var held atomic.Bool
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					before := held.Load()
					f.Advance(time.Microsecond)
					if d, err := f.Allow(context.Background(), "a"); err == nil && d.Allowed && before {
						late.Add(1)
					}
				}
			})
		}
		f.hold("a", time.Hour)
		held.Store(true)
		wg.Wait()
		if n := late.Load(); n > 0 {
			f.Fatalf("%d grants after Hold, want 0", n)
		}
	}
}

func holdUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	l := skipUnless[hasHold](f)
	f.granted("a", 2, 8)
	err := l.Hold(context.Background(), "b", f.Now().Add(time.Hour))
	if !errors.Is(err, tb.ErrTableFull) {
		f.Errorf("Hold of a new key: %v, want ErrTableFull", err)
	}
	if l, ok := f.Limiter.(hasStats); ok && (l.Stats().RefusedNew != 1 || l.Stats().Keys != 1) {
		f.Errorf("%+v, want one key and one that was refused", l.Stats())
	}
	f.hold("a", time.Hour)
	f.refused("b", 1, time.Hour+10*time.Second, 0)
	f.Advance(time.Hour + 10*time.Second)
	f.hold("b", time.Minute)
	f.refused("b", 1, 61*time.Second, 0)
}

func refusalByAFullTableHoldsNothing(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	f.granted("a", 2, 8)
	c := f.guarded("b", 3, time.Hour)
	f.takes(c, refused(2*time.Second, 0))
	f.Advance(2 * time.Second)
	f.takes(c, granted(7))
}

// The table sees the reading of Hold, and not its time: keys are dropped, evicted and start by now.
func holdIsNoReading(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(2))
	f.granted("a", 10, 0)
	f.granted("b", 9, 1)
	f.hold("c", time.Hour)
	f.granted("b", 10, 0) // it was evicted, and starts now
	f.refused("b", 1, time.Second, 0)
	f.refused("c", 1, time.Hour+time.Second, 0)
	f.Advance(time.Second)
	f.granted("b", 1, 0)
	if l, ok := f.Limiter.(hasStats); ok && l.Stats().EvictedFull != 0 {
		f.Errorf("%+v, want no full key evicted", l.Stats())
	}
}

// A held bucket ranks by the instant at which it will be full. Its eviction forgives a capacity and
// the debt behind the hold, however long the hold is.
func heldBucketIsEvictedLast(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(3))
	l := skipUnless[hasStats](f)
	f.hold("held", time.Second)
	f.hold("owes", time.Hour)
	f.take(f.waiting("owes", 2, tb.Never))
	f.granted("a", 10, 0)
	f.granted("b", 1, 9) // evicts a
	f.refused("held", 1, 2*time.Second, 0)
	f.granted("b", 9, 0)
	f.hold("b", 2*time.Second)
	f.granted("c", 1, 9) // evicts held
	f.hold("c", 2*time.Hour)
	f.granted("d", 1, 9) // evicts b
	f.hold("d", 2*time.Hour)
	f.granted("e", 1, 9) // evicts owes
	f.refused("c", 1, 2*time.Hour+time.Second, 0)
	if got := l.Stats(); got.EvictedInDebt != 4 || got.Forgiven != 10+10+10+12 {
		f.Errorf("%+v, want 4 in debt and 42 tokens forgiven", got)
	}
	f.Advance(3 * time.Hour)
	f.granted("g", 1, 9)
	if got := l.Stats(); got.EvictedInDebt != 4 || got.EvictedFull == 0 {
		f.Errorf("%+v, want full keys evicted after their holds", got)
	}
}
