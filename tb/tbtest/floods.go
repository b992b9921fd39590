package tbtest

import (
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// flood makes calls of n tokens on new keys, with step between them, and one call on the key
// victim for every hundred of them. It fails the test if the table grows beyond 1000 keys, if the
// victim is granted more than C1 allows, or if a new key is refused and mayRefuse is false.
func (f *fixture) flood(calls, n int, step time.Duration, mayRefuse bool) {
	f.Helper()
	granted := 0 // to the victim
	began := f.ns.Load()
	for i := range calls {
		f.Advance(step)
		if d := f.allowN("new "+strconv.Itoa(i), n); !d.Allowed && !mayRefuse {
			f.Fatalf("the first call on new key %d: %+v, want granted", i, d)
		}
		if i%100 == 0 && f.allow("victim").Allowed {
			granted++
			f.atMost(f.limit.Capacity+granted, time.Duration(f.ns.Load()-began))
		}
		if i%1000 == 0 {
			f.atMostKeys(1000)
		}
	}
}

const floodCalls = 50_000

func floodDoesNotResetADrainedKey(s *suite) {
	for _, step := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond} {
		f := s.new(perSecond(10, 1), tb.WithMaxKeys(1000))
		f.granted("victim", 10, 0)
		f.flood(floodCalls, 1, step, false)
		f.atMostKeys(1000)
	}
}

// New keys that are drained in a table of full buckets evict full ones, and not each other.
func newKeysOfAnIdleTableEvictFullBuckets(s *suite) {
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

// An order that keeps the stamps of the inserts has the drained keys first, with stale stamps.
// It must look further for a full bucket.
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
	l, ok := f.Limiter.(hasStats)
	if !ok {
		return
	}
	if st := l.Stats(); st.EvictedInDebt != 0 || st.Forgiven != 0 {
		f.Errorf("%+v: want no debt forgiven", st)
	}
}

func drainingFloodUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1000), tb.WithOverflow(tb.RefuseNew))
	f.granted("victim", 10, 0)
	f.flood(floodCalls, 10, 100*time.Microsecond, true)
	if l, ok := f.Limiter.(hasStats); ok {
		if st := l.Stats(); st.Forgiven != 0 || st.EvictedInDebt != 0 || st.RefusedNew == 0 {
			s.Errorf("%+v: want no debt forgiven, and new keys refused", st)
		}
	}
}

// A caller that drains all keys of a full table can have a debt forgiven. Stats reports it.
func drainingFloodUnderForgiveLeast(s *suite) {
	for _, capacity := range []int{10, tb.MaxCapacity} { // also more than 2⁶⁴ millionths in all
		f := s.new(perSecond(capacity, 1), tb.WithMaxKeys(1000))
		l := skipUnless[hasStats](f)
		over := 0 // grants above C1
		for i := range floodCalls {
			if i%100 == 0 { // the clock stands still: each grant after the first is above C1
				if f.allowN("victim", capacity).Allowed && i > 0 {
					over++
				}
			}
			if d := f.allowN("new "+strconv.Itoa(i), capacity); !d.Allowed {
				s.Fatalf("the first call on new key %d: %+v, want granted", i, d)
			}
		}
		// Every insert drained a key. Once the table was full, every insert evicted a drained key.
		st := l.Stats()
		if over == 0 || st.Forgiven != float64(capacity)*float64(st.EvictedInDebt) {
			s.Errorf("%+v: the victim was granted %d times above C1", st, over)
		}
		if st.EvictedFull != 0 || st.Keys != 1000 {
			s.Errorf("%+v: want no full bucket evicted, and 1000 keys", st)
		}
		if inserts := floodCalls + over + 1; int(st.EvictedInDebt) != inserts-1000 {
			s.Errorf("%+v: want %d evictions", st, inserts-1000)
		}
	}
}

func forgivenDebtIsTheOvergrant(s *suite) {
	const bound, keys, rounds = 1000, 1001, 25
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(bound))
	l := skipUnless[hasStats](f)
	granted := 0
	for range rounds {
		for k := range keys { // each key comes back just after it was evicted
			for f.allow(strconv.Itoa(k)).Allowed {
				granted++
			}
		}
	}
	// One key is always out of the table. It has not used the tokens that it was forgiven.
	overgrant := granted - 10*keys
	if st := l.Stats(); int(st.Forgiven) != overgrant+10*(keys-bound) || overgrant == 0 {
		s.Errorf("%+v: %v tokens forgiven, want %d", st, st.Forgiven, overgrant+10)
	}
}
