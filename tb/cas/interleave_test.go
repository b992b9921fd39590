package cas

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/internal/lockstep"
	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// The tests in this file stop one goroutine between two of its steps by making the
// steps of the other at that point, so that each interleaving happens on every run.

// fake is a limiter with ten tokens a key, one a second, and a clock that is set.
type fake struct {
	*Limiter[string]
	t   *testing.T
	now time.Duration
}

func newFake(t *testing.T, opts ...tb.Option) *fake {
	f := &fake{t: t}
	now := func() time.Time { return time.Unix(0, 0).Add(f.now) }
	l, err := New[string](tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		append(opts, tb.WithClock(now))...)
	if err != nil {
		t.Fatal(err)
	}
	f.Limiter = l
	return f
}

func (f *fake) allow(key string, n int) tb.Decision {
	f.t.Helper()
	d, err := f.AllowN(context.Background(), key, n)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func (f *fake) granted(key string, n int) {
	f.t.Helper()
	if d := f.allow(key, n); !d.Allowed {
		f.t.Fatalf("%s, %d tokens: %+v, want granted", key, n, d)
	}
}

func (f *fake) refused(key string, n int) {
	f.t.Helper()
	if d := f.allow(key, n); d.Allowed {
		f.t.Fatalf("%s, %d tokens: %+v, want refused", key, n, d)
	}
}

func (f *fake) bucket(key string) *bucket {
	f.t.Helper()
	b, ok := f.table.Load(key)
	if !ok {
		f.t.Fatalf("%q is not in the table", key)
	}
	return b
}

// stopped is a ledger that lets other steps in just before a bucket is retired, after
// the evictor has read its state, and just after.
type stopped struct {
	*ledger
	before func(*bucket)
	after  func()
}

func (s *stopped) Retire(b *bucket, word, now uint64) bool {
	if f := s.before; f != nil {
		s.before = nil
		f(b)
	}
	retired := s.ledger.Retire(b, word, now)
	if f := s.after; f != nil && retired {
		s.after = nil
		f()
	}
	return retired
}

// stopEvictions has f's table call before at the next eviction.
func (f *fake) stopEvictions(keys int, before func(*bucket)) {
	var values lru.Values[*bucket] = &stopped{ledger: f.ledger, before: before}
	f.table.Init(keys, false, values)
}

func TestTakeBeforeEvictionWins(t *testing.T) {
	f := newFake(t)
	f.stopEvictions(2, func(b *bucket) {
		if d, _, s := b.take(&f.meter, f.clock.read(), 10*f.meter.scale); s != decided || !d.Allowed {
			t.Errorf("the full bucket did not give its tokens: %+v", d)
		}
	})
	f.granted("victim", 1)
	f.granted("other", 5)
	f.now = 2 * time.Second // victim is full, and about to be evicted when it is drained
	f.granted("new", 1)
	if d := f.allow("victim", 1); d.Allowed {
		t.Errorf("the drained bucket was forgotten: %+v", d)
	}
	if st := f.Stats(); st.EvictedFull != 0 || st.EvictedInDebt != 1 || st.Forgiven != 3 {
		t.Errorf("%+v: want the other bucket evicted, with 3 tokens missing", st)
	}
}

func TestTakeAfterEvictionStartsOver(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(1))
	f.granted("victim", 10)
	held := f.bucket("victim") // a caller is stopped here, with the bucket in hand
	f.granted("new", 1)
	last := held.word.Load()
	for range 20 {
		if d, _, s := held.take(&f.meter, f.clock.read(), f.meter.scale); s != gone || d.Allowed {
			t.Fatalf("an evicted bucket decided %+v", d)
		}
	}
	if held.word.Load() != last || last != evicted {
		t.Errorf("an evicted bucket changed from %x to %x", last, held.word.Load())
	}
	f.granted("victim", 10) // the caller starts over: a new bucket
}

func TestCallerMeetsEvictedBucketInTheTable(t *testing.T) {
	f := newFake(t)
	f.stopEvictions(1, nil)
	f.granted("victim", 10)
	b := f.bucket("victim")
	word := b.word.Load()
	if !f.ledger.Retire(b, word, f.clock.read()) {
		t.Fatal("not retired")
	}
	// The evictor is stopped before it removes the key.
	if _, _, s := b.take(&f.meter, f.clock.read(), 1); s != gone {
		t.Errorf("take on an evicted bucket: state %d, want gone", s)
	}
	if f.ledger.Retire(b, word, f.clock.read()) {
		t.Error("retired twice")
	}
}

// Between the removal of one key and the arrival of the other, nobody sees both missing.
func TestPeekSeesNoInsertHalfDone(t *testing.T) {
	f := newFake(t)
	peeked := make(chan [4]tb.Decision, 1)
	f.table.Init(1, false, &stopped{ledger: f.ledger, after: func() {
		go func() {
			var d [4]tb.Decision
			d[0], _ = f.Peek(context.Background(), "victim")
			d[1], _ = f.Peek(context.Background(), "new")
			d[2] = f.allow("victim", 11)
			d[3] = f.allow("new", 11)
			peeked <- d
		}()
		for range 1000 {
			runtime.Gosched()
		}
		if len(peeked) > 0 {
			t.Error("a caller did not wait for the insert")
		}
	}})
	f.granted("victim", 10)
	f.granted("new", 4)
	want := [4]tb.Decision{
		{Allowed: true, Remaining: 9}, {Allowed: true, Remaining: 5},
		{RetryAfter: tb.Never, Remaining: 10}, {RetryAfter: tb.Never, Remaining: 6},
	}
	if got := <-peeked; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// twin is the limiter that f must not be told apart from.
func (f *fake) twin() *mutex.TokenBucket {
	return mutex.NewTokenBucket(10, 1,
		tb.WithClock(func() time.Time { return time.Unix(0, 0).Add(f.now) }))
}

// span is the time that a delta lasts, plus a bit.
func (f *fake) span() time.Duration {
	t, _ := f.meter.reaches(0, 1<<(63-f.meter.width))
	return time.Duration(t) + 3*time.Second
}

func TestCallerCompletesAStalledMove(t *testing.T) {
	for _, late := range []time.Duration{0, 5 * time.Second, 100 * time.Hour} {
		f := newFake(t)
		twin := f.twin()
		f.granted("a", 7)
		twin.AllowN(context.Background(), "a", 7)
		for range 8 {
			f.now += f.span()
			b := f.bucket("a")
			word := b.word.Load()
			b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
			if _, _, s := b.take(&f.meter, f.clock.read(), 1); s != moved {
				t.Fatalf("take on a sealed bucket: state %d, want moved", s)
			}
			for _, peek := range []bool{true, false} {
				var got, want tb.Decision
				f.now -= late
				if peek {
					got, _ = f.Peek(context.Background(), "a")
					want, _ = twin.Peek(context.Background(), "a")
				} else {
					got = f.allow("a", 3)
					want, _ = twin.AllowN(context.Background(), "a", 3)
				}
				f.now += late
				if got != want {
					t.Fatalf("late by %v: got %+v, want %+v", late, got, want)
				}
			}
			if f.bucket("a") == b {
				t.Fatal("the move was not completed")
			}
		}
	}
}

func TestDeltaRunsOut(t *testing.T) {
	f := newFake(t)
	twin := f.twin()
	moves := 0
	for i := range 1000 {
		var old *bucket
		if i > 0 {
			old = f.bucket("a")
		}
		got := f.allow("a", 1+i%10)
		want, _ := twin.AllowN(context.Background(), "a", 1+i%10)
		if got != want {
			t.Fatalf("call %d at %v: got %+v, want %+v", i, f.now, got, want)
		}
		if i > 0 && f.bucket("a") != old {
			moves++
		}
		f.now += time.Duration(1+i%7) * f.span() / 5
	}
	if moves < 100 {
		t.Errorf("%d moves, want at least 100: the test shows nothing", moves)
	}
}

func TestOnlyOneOfTwoMoversSucceeds(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	b := f.bucket("a")
	f.now = f.span()
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	now := f.clock.read()

	if d, _, ok := f.move("a", b, now, f.meter.scale); !ok || !d.Allowed || d.Remaining != 9 {
		t.Fatalf("the first mover got %+v, %v, want a grant", d, ok)
	}
	first := f.bucket("a")
	f.granted("a", 9) // on the successor
	if _, _, ok := f.move("a", b, now, f.meter.scale); ok || f.bucket("a") != first {
		t.Fatal("a late mover replaced the successor, and what was taken from it is forgotten")
	}
	f.refused("a", 1)
	if _, _, s := b.take(&f.meter, now, f.meter.scale); s != moved {
		t.Errorf("take on the old bucket: state %d, want moved", s)
	}
}

func TestTakePastTheDeltaSeals(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	b := f.bucket("a")
	f.now = f.span()
	if _, _, s := b.take(&f.meter, f.clock.read(), 1); s != moved || !isSealed(b.word.Load()) {
		t.Errorf("state %d, word %x, want moved and sealed", s, b.word.Load())
	}
}

// A helper whose reading is older than the bucket does not take it back in time, and one
// that is refused does not help.
func TestLateHelperKeepsTheBucketsTime(t *testing.T) {
	for _, deficitAtBase := range []bool{true, false} {
		f := newFake(t)
		f.granted("other", 1) // starts the clock
		f.now = 90 * time.Second
		if !deficitAtBase {
			f.granted("a", 1)
		}
		f.now = 100 * time.Second
		f.granted("a", 5)
		b := f.bucket("a")
		word := b.word.Load()
		b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
		f.now = 50 * time.Second
		f.refused("a", 6)
		if f.bucket("a") != b || b.word.Load() != word|sealBit {
			t.Fatal("a refusal wrote")
		}
		f.granted("a", 5)
		if f.bucket("a") == b {
			t.Fatal("the move was not completed")
		}
		f.now = 100 * time.Second
		f.refused("a", 1)
		f.now = 101 * time.Second
		f.granted("a", 1)
	}
}

// While the mover is stopped, a call at its time is refused, and then a late one drains
// the bucket. What the bucket is given from then on must not begin at the time of the
// refusal.
func TestRefusedHelperLeavesNoTime(t *testing.T) {
	f := newFake(t)
	twin := f.twin()
	f.granted("a", 10)
	twin.AllowN(context.Background(), "a", 10)
	b := f.bucket("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	for _, call := range []struct {
		at time.Duration
		n  int
	}{{f.span(), 11}, {f.span() - 5*time.Second, 10}, {f.span(), 6}, {f.span(), 5}} {
		f.now = call.at
		got := f.allow("a", call.n)
		want, _ := twin.AllowN(context.Background(), "a", call.n)
		if got != want {
			t.Fatalf("%d tokens at %v: got %+v, want %+v", call.n, call.at, got, want)
		}
	}
}

// A charge that was checked on a bucket that moved since is not decided on the old one.
func TestTakeAfterCheckMeetsMovedBucket(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	c, _ := f.Charge("a", 5)
	f.now = time.Second
	_, _ = c.Check(time.Unix(1, 0))
	b := f.bucket("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	f.Reset("a")
	f.granted("a", 1)
	if d, _ := c.Take(time.Unix(1, 0)); !d.Allowed || d.Remaining != 4 {
		t.Errorf("after a reset: %+v, want 4 tokens left", d)
	}
	_, _ = c.Check(time.Unix(1, 0))
	b = f.bucket("a")
	word = b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit)
	f.granted("a", 3) // moves
	if d, _ := c.Take(time.Unix(1, 0)); d.Allowed || d.Remaining != 1 {
		t.Errorf("after a move: %+v, want 1 token left", d)
	}
}

func TestMoveKeepsNoMemoryOfTheCaller(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(1))
	buffer := []byte("client-1")
	key := unsafe.String(&buffer[0], len(buffer))
	f.granted(key, 10)
	f.now = f.span()
	f.granted(key, 10) // moves
	buffer[7] = '2'    // the buffer is used again
	f.refused("client-1", 1)
	f.granted("client-3", 1) // evicts client-1
	if n := f.Len(); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func TestResetMeetsHolderAndSeal(t *testing.T) {
	f := newFake(t)
	f.granted("a", 10)
	b := f.bucket("a")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	f.Reset("a")
	if _, _, s := b.take(&f.meter, f.clock.read(), 1); s != gone {
		t.Errorf("take on a bucket that was reset: state %d, want gone", s)
	}
	f.granted("a", 10)
	f.now = time.Second
	f.granted("a", 1) // refilled: time was not moved ahead
	f.refused("a", 1)
}

func TestSealedBucketsAreOrderedByTheirState(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(2))
	f.granted("least", 1)
	f.granted("most", 10)
	b := f.bucket("least")
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	f.granted("new", 2)
	if st := f.Stats(); st.Forgiven != 1 || b.word.Load() != evicted {
		t.Errorf("%+v: want the sealed bucket evicted, with 1 token missing", st)
	}
	f.refused("most", 1)
}

func TestConcurrentLeavesKeepTheLatest(t *testing.T) {
	var l ledger
	lockstep.Run(50_000, func(i, round int) { l.leave(uint64(2*round + i)) }, func(round int) {
		if got, want := l.latest.Load(), uint64(2*round+1); got != want {
			t.Errorf("latest is %d, want %d", got, want)
		}
	})
}

// One caller's grant is the last that fits the delta, and the other's does not fit.
func TestGrantAndSealAtTheSameTime(t *testing.T) {
	f := newFake(t)
	end := time.Unix(0, 0).Add(f.span() - 3*time.Second)
	const rounds = 20_000
	keys := make([]string, rounds)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
		_, _ = f.AllowAt(time.Unix(0, 0), keys[i], 1)
	}
	lockstep.Run(rounds, func(i, round int) {
		_, _ = f.AllowAt(end.Add(time.Duration(2*i-1)*time.Millisecond), keys[round], 3)
	}, func(round int) {
		if d, _ := f.AllowAt(end, keys[round], 5); d.Allowed || d.Remaining != 4 {
			t.Errorf("round %d: a grant was lost: %+v", round, d)
		}
	})
}

func TestMoverMeetsEviction(t *testing.T) {
	f := newFake(t, tb.WithMaxKeys(1))
	f.granted("a", 10)
	b := f.bucket("a")
	f.now = f.span()
	word := b.word.Load()
	b.word.CompareAndSwap(word, word|sealBit) // the mover is stopped here
	f.granted("new", 1)                       // evicts a, sealed as it is
	if b.word.Load() != evicted {
		t.Errorf("word %x, want evicted", b.word.Load())
	}
	f.move("a", b, f.clock.read(), f.meter.scale) // and goes on here
	if _, ok := f.table.Load("a"); ok || f.Len() != 1 {
		t.Errorf("the mover brought an evicted key back; %d keys", f.Len())
	}
	if st := f.Stats(); st.EvictedFull != 1 || st.EvictedInDebt != 0 {
		t.Errorf("%+v: want one full bucket evicted", st)
	}
}

func TestRefusalsOnASealedEdgeDoNotMove(t *testing.T) {
	f := newFake(t)
	f.granted("a", 1)
	f.now = f.span() - 6*time.Second
	f.granted("a", 10)
	b := f.bucket("a")
	word := b.word.Load()
	f.now = f.span() + time.Second // beyond the delta, and only 7 tokens there
	f.refused("a", 10)
	if f.bucket("a") != b || b.word.Load() != word {
		t.Error("a refusal wrote")
	}
	f.granted("a", 7)
	if f.bucket("a") == b {
		t.Error("the bucket did not move: the test shows nothing")
	}
}

func TestCollidingCallersGrantExactly(t *testing.T) {
	const callers, capacity = 8, 2000
	l, err := New[string](tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Hour},
		tb.WithClock(func() time.Time { return time.Unix(0, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	var grants, collisions atomic.Int64
	for round := 0; collisions.Load() < 100; round++ { // until it has been put to the test
		key := strconv.Itoa(round)
		_, _ = l.Allow(context.Background(), key)
		b, _ := l.table.Load(key)
		grants.Store(1)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range capacity / 4 {
					word := b.word.Load()
					runtime.Gosched()
					if b.word.Load() != word {
						collisions.Add(1)
					}
					if d, _ := l.Allow(context.Background(), key); d.Allowed {
						grants.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := grants.Load(); n != capacity {
			t.Fatalf("%d of %d granted", n, capacity)
		}
	}
}
