package redis

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Two limiters reserve tokens of one bucket. No slot is given twice, and their order is one.
func TestReservationsOfProcesses(t *testing.T) {
	s := redistest.Start(t)
	limit := tb.Limit{Capacity: 100, Tokens: 1, Per: time.Hour}
	limiters := []*Limiter{newLimiter(t, dial(t, s), limit), newLimiter(t, dial(t, s), limit)}
	var mu sync.Mutex
	var delays []time.Duration
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			r, err := limiters[i%2].Reserve(t.Context(), "a", 1)
			if err != nil || !r.Allowed {
				t.Errorf("%+v, %v", r, err)
			}
			mu.Lock()
			defer mu.Unlock()
			delays = append(delays, r.Delay())
		})
	}
	wg.Wait()
	slices.Sort(delays)
	if delays[99] != 0 || delays[100] < 30*time.Minute {
		t.Errorf("the delays of the first 101 tokens end with %v", delays[98:101])
	}
	for i := 101; i < 200; i++ { // an hour apart, but for the time of the calls
		if d := delays[i] - delays[i-1]; d < time.Hour-time.Minute {
			t.Errorf("slot %d is %v after the one before", i, d)
		}
	}
	r, err := limiters[0].Reserve(t.Context(), "a", 1)
	if err != nil || r.Allowed || r.RetryAfter > time.Hour {
		t.Errorf("beyond a capacity of debt: %+v, %v", r, err)
	}
	if n := limiters[0].Stats().Reservations + limiters[1].Stats().Reservations; n != 200 {
		t.Errorf("%d reservations", n)
	}
}

// Each call of Reserve, Settle and Cancel is one command, and shares one with others.
func TestCommandsOfReservations(t *testing.T) {
	l := learned(t, newLimiter(t, dial(t, redistest.Start(t)), slow))
	commands := func(f func()) uint64 {
		before := l.Stats().Commands
		f()
		return l.Stats().Commands - before
	}
	level := func(want float64) {
		t.Helper()
		if v, err := l.Level(t.Context(), "a"); err != nil || v.Tokens < want || v.Tokens > want+0.01 {
			t.Errorf("%+v, %v, want %v tokens", v, err, want)
		}
	}
	var r tb.Reservation
	for i, f := range []func(){
		func() { r, _ = l.Reserve(t.Context(), "a", 6) },
		func() { _ = r.Settle(2) }, // 8 tokens
		func() { r, _ = l.Reserve(t.Context(), "a", 3) },
		func() { _ = r.Settle(20) }, // −10 tokens, and 2 are unpaid
		func() { r, _ = l.Reserve(t.Context(), "b", 10) },
		func() { r, _ = l.Reserve(t.Context(), "b", 5) },
		func() { r.Cancel() },
	} {
		if n := commands(f); n != 1 {
			t.Errorf("call %d: %d commands", i, n)
		}
	}
	if n := commands(func() { r.Cancel(); _ = r.Settle(1) }); n != 0 {
		t.Errorf("%d commands of a reservation that has ended", n)
	}
	level(-10)
	if s := l.Stats(); s.UnpaidTokens < 1.9 || s.UnpaidTokens > 2 || s.Cancellations != 1 {
		t.Errorf("Stats: %+v", s)
	}
	if v, err := l.Level(t.Context(), "b"); err != nil || v.Tokens < 0 || v.Tokens > 0.01 {
		t.Errorf("after the cancellation: %+v, %v", v, err)
	}
	// An actual cost has no bound. The debt is a capacity at most.
	if r, _ = l.Reserve(t.Context(), "d", 4); !r.Allowed {
		t.Fatal(r)
	}
	if err := r.Settle(1e12); err != nil {
		t.Error(err)
	}
	if v, err := l.Level(t.Context(), "d"); err != nil || v.Tokens < -10 || v.Tokens > -9.99 {
		t.Errorf("after a large settlement: %+v, %v", v, err)
	}
	// Local refusals end with a settlement.
	c := newLimiter(t, l.client, slow, WithPrefix("c"))
	if r, _ = c.Reserve(t.Context(), "a", 10); !r.Allowed {
		t.Fatal(r)
	}
	if d, _ := c.Allow(t.Context(), "a"); d.Allowed {
		t.Errorf("%+v", d)
	}
	if err := r.Settle(4); err != nil {
		t.Error(err)
	}
	if d, err := c.AllowN(t.Context(), "a", 6); err != nil || d != granted(0) {
		t.Errorf("after the settlement: %+v, %v", d, err)
	}
}

func TestWait(t *testing.T) {
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), tb.Limit{Capacity: 2, Tokens: 1, Per: 20 * time.Millisecond})
	start := time.Now()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := l.Wait(t.Context(), "a", 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if d := time.Since(start); d < 79*time.Millisecond { // 4 tokens after the first two
		t.Errorf("6 tokens after %v", d)
	}
	slowly := newLimiter(t, dial(t, s), slow, WithPrefix("slow:"))
	if err := slowly.Wait(t.Context(), "a", 10); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var refused *tb.WaitError
	if err := slowly.Wait(ctx, "a", 1); !errors.As(err, &refused) || !refused.Deadline ||
		refused.Wait < 23*time.Hour {
		t.Errorf("a slot beyond the deadline: %v", err)
	}
	if err := slowly.Wait(ctx, "a", 11); !errors.As(err, &refused) || refused.Deadline ||
		refused.Wait != tb.Never {
		t.Errorf("a cost above the capacity: %v", err)
	}
	// A caller that leaves gives its tokens back.
	ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- slowly.Wait(ctx, "a", 5) }()
	for slowly.Stats().Reservations < 2 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that leaves: %v", err)
	}
	if v, err := slowly.Level(t.Context(), "a"); err != nil || v.Tokens < 0 {
		t.Errorf("%+v, %v, want no debt", v, err)
	}
	if err := slowly.Wait(t.Context(), "a", 0); !errors.Is(err, tb.ErrInvalidCost) {
		t.Errorf("no cost: %v", err)
	}
}

// outside is a client whose commands run in a goroutine outside of a synctest bubble.
type outside struct {
	rueidis.Client
	commands chan rueidis.Completed
	results  chan rueidis.RedisResult
}

// Do implements rueidis.Client. The context stays in the bubble.
func (o *outside) Do(_ context.Context, c rueidis.Completed) rueidis.RedisResult {
	o.commands <- c
	return <-o.results
}

// The debt is too deep for another call of Wait. Its deadline counts as too near only if the slot
// would be later, in whole microseconds.
func TestDeadlineAtASlotThatIsTooFar(t *testing.T) {
	s := startSimulator(t, bucketsText)
	o := &outside{s.client, make(chan rueidis.Completed), make(chan rueidis.RedisResult)}
	go func() {
		for c := range o.commands {
			o.results <- o.Client.Do(context.Background(), c)
		}
	}()
	defer close(o.commands)
	s.client = o
	const capacity = 1 << 30 // half of the deepest debt
	synctest.Test(t, func(t *testing.T) {
		now := func() time.Time { return time.UnixMicro(noon) }
		l, err := s.newLimiter(now, perSecond(capacity, capacity/2), WithMaxDenial(0))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := newCharge(t, l, "a", capacity).(*Charge)
		c.MayWait(tb.Never)
		for range 3 {
			if d, err := c.Take(time.Now()); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		for _, tt := range []struct {
			within   time.Duration
			deadline bool
		}{{6*time.Second + 999, false}, {6 * time.Second, false}, {6*time.Second - 1, true}} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.within)
			want := &tb.WaitError{Wait: 6 * time.Second, Deadline: tt.deadline}
			var got *tb.WaitError
			if err := l.Wait(ctx, "a", capacity); !errors.As(err, &got) || *got != *want {
				t.Errorf("within %v: %v, want %v", tt.within, err, want)
			}
			cancel()
		}
	})
}

// Without the server, the policy decides reservations too.
func TestReservationsWithoutTheServer(t *testing.T) {
	s := redistest.Start(t)
	var all []*Limiter
	for i, p := range []Policy{Refuse, Allow, LocalShare(2)} {
		all = append(all, newLimiter(t, dial(t, s), slow, WithPolicy(p), WithPrefix(strconv.Itoa(i))))
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, true} {
		r, err := all[i].Reserve(t.Context(), "a", 5)
		if err != nil || r.Allowed != want || r.Delay() != 0 {
			t.Errorf("%v: %+v, %v", all[i].policy, r, err)
		}
		if err := r.Settle(1); err != nil {
			t.Error(err)
		}
		err = all[i].Wait(t.Context(), "b", 5)
		if e := new(Error); want && err != nil || !want && !errors.As(err, &e) {
			t.Errorf("%v: Wait: %v", all[i].policy, err)
		}
	}
}

// A new limit converts buckets. Statistics and the breaker go on, and what was seen under the old
// limit refuses no call.
func TestSetLimit(t *testing.T) {
	c := dial(t, redistest.Start(t))
	large := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}
	l := newLimiter(t, c, large, WithPolicy(LocalShare(2)))
	if d, err := l.AllowN(t.Context(), "a", 998); err != nil || d != granted(2) {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := l.AllowN(t.Context(), "a", 900); err != nil || d.Allowed {
		t.Errorf("900 of 2 tokens: %+v, %v", d, err)
	}
	small := tb.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}
	if err := l.SetLimit(small); err != nil || l.Limit() != small || l.share.Limit().Capacity != 5 {
		t.Fatalf("%v, %+v", err, l.Limit())
	}
	if d, err := l.AllowN(t.Context(), "a", 2); err != nil || d != granted(0) {
		t.Errorf("2 of 2 tokens after a lower limit: %+v, %v", d, err)
	}
	d, err := l.Allow(t.Context(), "a")
	if err != nil || d.Allowed || d.RetryAfter > 6*time.Minute || d.RetryAfter < 5*time.Minute {
		t.Errorf("after a lower limit: %+v, %v, want a wait of 6 minutes", d, err)
	}
	if s := l.Stats(); s.Granted != 2 {
		t.Errorf("Stats: %+v", s)
	}
	if err := l.SetLimit(tb.Limit{}); err == nil || l.Limit() != small {
		t.Errorf("an impossible limit: %v, %+v", err, l.Limit())
	}
	if err := l.SetLimit(perSecond(1, 1)); err == nil || l.Limit() != small {
		t.Errorf("a limit without shares: %v, %+v", err, l.Limit())
	}
}

// While half of a fleet has a lower limit, both halves grant what the limits allow, and the bucket
// gains nothing.
func TestTwoLimitsAtOnce(t *testing.T) {
	s := redistest.Start(t)
	old := newLimiter(t, dial(t, s), tb.Limit{Capacity: 500, Tokens: 1, Per: time.Hour})
	next := newLimiter(t, dial(t, s), tb.Limit{Capacity: 5, Tokens: 1, Per: time.Hour})
	granted := 0
	for range 600 {
		for _, l := range []*Limiter{old, next} {
			d, err := l.Allow(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				granted++
			}
		}
	}
	if granted != 6 { // the first caller of the old limit, and then 5
		t.Errorf("%d tokens granted, want 6", granted)
	}
}

// The keys of tiers share buckets, and each call brings its limit.
func TestTiers(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	pro, err := l.Tier(tb.Limit{Capacity: 100, Tokens: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := pro.AllowN(t.Context(), "a", 40); err != nil || d != granted(60) {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := l.AllowN(t.Context(), "b", 4); err != nil || d != granted(6) {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := pro.Allow(t.Context(), "b"); err != nil || d != granted(5) { // 6 tokens of 10
		t.Errorf("a key that has changed its tier: %+v, %v", d, err)
	}
	if d, err := l.Allow(t.Context(), "a"); err != nil || d != granted(9) {
		t.Errorf("a key that has changed its tier: %+v, %v", d, err)
	}
	if s := pro.Stats(); s.Granted != 4 {
		t.Errorf("Stats: %+v", s)
	}
	// All or nothing, with a charge that may wait.
	charges := []tb.Charge{newCharge(t, l, "c", 1), newCharge(t, pro, "d", 1)}
	if _, err := l.AllowN(t.Context(), "c", 10); err != nil {
		t.Fatal(err)
	}
	charges[0].(*Charge).MayWait(48 * time.Hour)
	commands := l.Stats().Commands
	_, ok, err := TakeAll(t.Context(), time.Now(), charges, nil)
	if delay := charges[0].(*Charge).Delay(); !ok || err != nil || l.Stats().Commands != commands+1 ||
		delay > 24*time.Hour || delay < 23*time.Hour {
		t.Errorf("%t, %v, delay %v", ok, err, delay)
	}
	if err := charges[1].(*Charge).Settle(3); err != nil {
		t.Error(err)
	}
	if v, err := pro.Level(t.Context(), "d"); err != nil || int(v.Tokens) != 97 {
		t.Errorf("after the settlement: %+v, %v", v, err)
	}
	if _, err := l.Tier(tb.Limit{}); err == nil {
		t.Error("an impossible tier")
	}
}

// The sum of unpaid tokens grows with each settlement, also if the actual costs are absurd.
func TestAbsurdCostsAreUnpaid(t *testing.T) {
	for _, limit := range []tb.Limit{perSecond(10, 1), perSecond(1<<30, 1)} {
		l := newLimiter(t, dial(t, redistest.Start(t)), limit)
		for i := 1; i <= 5; i++ {
			r, err := l.Reserve(t.Context(), "a", 1)
			if err != nil || r.Settle(math.MaxFloat64) != nil {
				t.Fatal(err)
			}
			want := float64(i) * mostSettled / float64(l.layout.Load().scale)
			if n := l.Stats().UnpaidTokens; n < 0.999*want || n > want {
				t.Errorf("%v: %v tokens are unpaid after %d settlements, want about %v", limit, n, i, want)
			}
			if err := l.Reset(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
