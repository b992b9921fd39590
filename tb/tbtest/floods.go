package tbtest

import (
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// flood makes calls of new keys and, after each hundred of them, one of the victim.
func (f *fixture) flood(calls, n int, step time.Duration, strangersRefused bool) {
	f.Helper()
	victim := 0
	began := f.ns.Load()
	for i := range calls {
		f.Advance(step)
		if d := f.allowN("stranger "+strconv.Itoa(i), n); !d.Allowed && !strangersRefused {
			f.Fatalf("the first call of stranger %d: %+v, want granted", i, d)
		}
		if i%100 == 0 && f.allow("victim").Allowed {
			victim++
			f.atMost(f.limit.Capacity+victim, time.Duration(f.ns.Load()-began))
		}
		if l, ok := f.Limiter.(counter); ok && i%1000 == 0 && l.Len() > 1000 {
			f.Fatalf("%d keys, want at most 1000", l.Len())
		}
	}
}

const floodCalls = 250_000

func floodDoesNotResetADrainedKey(s *suite) {
	for _, step := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(1000))
		f.granted("victim", 10, 0)
		f.flood(floodCalls, 1, step, false)
		if l, ok := f.Limiter.(counter); ok && l.Len() > 1000 {
			s.Errorf("%d keys, want at most 1000", l.Len())
		}
	}
}

// New keys that are drained in a table of full buckets push out those, and not each other.
func drainingNewKeysOfAnIdleTable(s *suite) {
	const bound = 8192
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
	for i := range bound {
		f.granted("idle "+strconv.Itoa(i), 1, 9)
	}
	f.Advance(30 * time.Second)
	granted := 0
	for range 100 {
		for k := range 8 {
			for range 10 {
				if f.allow("new " + strconv.Itoa(k)).Allowed {
					granted++
				}
			}
		}
	}
	if granted != 80 {
		s.Errorf("%d tokens granted to 8 keys at one instant, want 80", granted)
	}
	f.nothingForgiven()
}

// The order has the drained keys first, as it saw them when they were inserted. It has to
// look further for a bucket that is full.
func drainedKeysStayWhileOthersAreFull(s *suite) {
	const bound = 4000
	for _, drained := range []int{1, 17, 100, 512} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
		for i := range bound {
			f.granted(strconv.Itoa(i), 1, 9)
		}
		f.Advance(30 * time.Second)
		for i := range drained {
			f.granted(strconv.Itoa(i), 10, 0)
		}
		f.granted("new", 1, 9)
		f.nothingForgiven()
		for i := range drained {
			f.refused(strconv.Itoa(i), 1, time.Second, 0)
		}
	}
}

// nothingForgiven fails the test if a bucket was evicted in debt.
func (f *fixture) nothingForgiven() {
	f.Helper()
	l, ok := f.Limiter.(statser)
	if !ok {
		return
	}
	if st := l.Stats(); st.EvictedInDebt != 0 || st.Forgiven != 0 {
		f.Errorf("%+v: want nothing forgiven", st)
	}
}

func drainingFloodUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1000), tb.WithOverflow(tb.RefuseNew))
	f.granted("victim", 10, 0)
	f.flood(floodCalls, 10, 100*time.Microsecond, true)
	if l, ok := f.Limiter.(statser); ok {
		if st := l.Stats(); st.Forgiven != 0 || st.EvictedInDebt != 0 || st.RefusedNew == 0 {
			s.Errorf("%+v: want nothing forgiven, and new keys refused", st)
		}
	}
}

// Whoever drains a table full of keys can have a debt forgiven, and Stats says so.
func drainingFloodUnderForgiveLeast(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1000))
	l := as[statser](f)
	over := 0
	for i := range floodCalls {
		if i%100 == 0 { // at the same instant: each grant after the first is one too many
			if f.allowN("victim", 10).Allowed && i > 0 {
				over += 10
			}
		}
		if d := f.allowN("stranger "+strconv.Itoa(i), 10); !d.Allowed {
			s.Fatalf("the first call of stranger %d: %+v, want granted", i, d)
		}
	}
	// The clock stands still. Every insert drained a key, and once the table was full
	// another drained key had to go for it.
	st := l.Stats()
	if over == 0 || int(st.Forgiven) != 10*int(st.EvictedInDebt) || float64(over) > st.Forgiven {
		s.Errorf("%+v: the victim was granted %d tokens too many", st, over)
	}
	if st.EvictedFull != 0 || st.Keys != 1000 {
		s.Errorf("%+v: want no full bucket evicted, and 1000 keys", st)
	}
	if inserts := floodCalls + over/10 + 1; int(st.EvictedInDebt) != inserts-1000 {
		s.Errorf("%+v: want %d evictions", st, inserts-1000)
	}
}

func forgivenDebtIsTheOvergrant(s *suite) {
	const bound, keys, rounds = 1000, 1001, 250
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
	l := as[statser](f)
	granted := 0
	for range rounds {
		for k := range keys { // each key comes back just after it was evicted
			for f.allow(strconv.Itoa(k)).Allowed {
				granted++
			}
		}
	}
	// One key is always out of the table; what it was forgiven, it has not used.
	overgrant := granted - 10*keys
	if st := l.Stats(); int(st.Forgiven) != overgrant+10*(keys-bound) || overgrant == 0 {
		s.Errorf("%+v: forgave %v tokens, want %d", st, st.Forgiven, overgrant+10)
	}
}
