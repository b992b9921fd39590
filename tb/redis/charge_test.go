package redis

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

func newCharge(t testing.TB, l *Limiter, key string, cost float64) tb.Charge {
	t.Helper()
	c, err := l.Charge(key, cost)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func takeAll(t testing.TB, charges ...tb.Charge) (decisions []tb.Decision, ok bool) {
	t.Helper()
	decisions, ok, err := TakeAll(t.Context(), time.Now(), charges, nil)
	if err != nil {
		t.Error(err)
	}
	return decisions, ok
}

func TestTakeAllOnOneServerIsOneCommand(t *testing.T) {
	c := dial(t, redistest.Start(t))
	user := newLimiter(t, c, slow, WithPrefix("user:"))
	slowTenant := tb.Limit{Capacity: 3, Tokens: 7, Per: 1<<40*time.Microsecond + time.Microsecond}
	tenant := newLimiter(t, c, slowTenant, WithPrefix("tenant:"), WithMaxDenial(0))
	var decisions []tb.Decision
	for i := range 4 {
		all, ok, err := TakeAll(t.Context(), time.Now(), []tb.Charge{
			newCharge(t, user, "a", 2), newCharge(t, tenant, "b", 1),
		}, decisions)
		decisions = all
		want := []tb.Decision{granted(8 - 2*i), granted(2 - i)}
		if i == 3 {
			want = []tb.Decision{granted(2), refused(decisions[1].RetryAfter, 0)}
		}
		if err != nil || ok != (i < 3) || decisions[0] != want[0] || decisions[1] != want[1] {
			t.Errorf("call %d: %t, %v: %+v, want %+v", i, ok, err, decisions, want)
		}
	}
	if w := decisions[1].RetryAfter; w <= 0 || w > slowTenant.Per/7+1 {
		t.Errorf("the tenant waits %v, want at most a seventh of its period", w)
	}
	wantTokens(t, user, "a", 4) // after a refusal of its tenant
	if n := user.Stats().Commands; n != 4+1 {
		t.Errorf("%d commands for 4 calls and a Level", n)
	}
	if n := tenant.Stats().Commands; n != 0 {
		t.Errorf("%d commands of the other limiter, want 0", n)
	}
}

func TestTakeAllWithoutBatchingIsACommandForEachKey(t *testing.T) {
	c := dial(t, redistest.Start(t))
	l, other := newLimiter(t, c, slow, WithoutBatching()), newLimiter(t, c, slow)
	_, ok := takeAll(t, newCharge(t, l, "a", 1), newCharge(t, l, "b", 1), newCharge(t, other, "c", 1))
	if n := l.Stats().Commands + other.Stats().Commands; !ok || n != 3 {
		t.Errorf("%t, %d commands, want 3", ok, n)
	}
}

// racing is a charge that another caller overtakes between Peek and Take.
type racing struct{ err error }

func (racing) Peek(time.Time) (tb.Decision, error)   { return granted(0), nil }
func (r racing) Take(time.Time) (tb.Decision, error) { return refused(time.Second, 0), r.err }
func (racing) Cancel()                               { panic("a refused charge is undone") }

func TestTakeAllWithLocalCharges(t *testing.T) {
	shared := newLimiter(t, dial(t, redistest.Start(t)), slow)
	local, err := cas.New[string](tb.Limit{Capacity: 2, Tokens: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	take := func(others ...tb.Charge) (bool, []tb.Decision, error) {
		charge, err := local.Charge("a", 1)
		if err != nil {
			t.Fatal(err)
		}
		charges := append([]tb.Charge{&charge, newCharge(t, shared, "a", 1)}, others...)
		decisions, ok, err := TakeAll(t.Context(), now, charges, nil)
		return ok, decisions, err
	}
	if ok, d, err := take(racing{}); ok || err != nil || d[2].Allowed {
		t.Errorf("an overtaken charge: %t, %+v, %v", ok, d, err)
	}
	broken := errors.New("broken")
	if ok, d, err := take(racing{broken}); ok || !errors.Is(err, broken) {
		t.Errorf("a broken charge: %t, %+v, %v", ok, d, err)
	}
	for i := range 2 {
		if ok, d, err := take(); !ok || err != nil || d[0] != granted(1-i) || d[1] != granted(9-i) {
			t.Errorf("call %d: %t, %+v, %v", i, ok, d, err)
		}
	}
	commands := shared.Stats().Commands
	if ok, d, err := take(); ok || err != nil || d[0].RetryAfter <= 0 || d[1] != (tb.Decision{}) {
		t.Errorf("a local refusal: %t, %+v, %v", ok, d, err)
	}
	if n := shared.Stats().Commands - commands; n != 0 {
		t.Errorf("%d commands for local refusals, want 0", n)
	}
}

// A call of TakeAll that times out is a failure of the server, as a call of one charge is. When the
// server goes on, its command takes nothing.
func TestTakeAllTimesOut(t *testing.T) {
	s := redistest.Start(t)
	operator := dial(t, s)
	l := newLimiter(t, dial(t, s), slow, WithTimeout(10*time.Millisecond))
	other := newLimiter(t, l.client, slow)
	l.nodes[0].offset.learn(0, 0, time.Now().UnixMicro()-origin.UnixMicro())
	resume := pause(t, operator)
	take := func() bool {
		_, ok := takeAll(t, newCharge(t, l, "a", 1), newCharge(t, other, "b", 1))
		return ok
	}
	for l.Stats().Opened == 0 {
		if take() {
			t.Fatal("a paused server takes tokens")
		}
	}
	// On a busy machine, a call may time out before its command is sent. That shows nothing of the
	// server.
	if n := l.Stats().Commands; n != failuresInARow {
		t.Errorf("the breaker opens after %d commands, want %d", n, failuresInARow)
	}
	if a, b := l.Stats().Failed, other.Stats().Failed; !maps.Equal(a, b) {
		t.Errorf("failures %v and %v, want one each call", a, b)
	}
	resume()
	l.Close() // waits for the commands
	wantBuckets(t, operator, 0)
}

func TestTakeAllOfOneKeyTwice(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	for i, want := range []bool{true, false} {
		a, b, again := newCharge(t, l, "a", 4), newCharge(t, l, "b", 1), newCharge(t, l, "a", 4)
		if decisions, ok := takeAll(t, a, b, again); ok != want {
			t.Errorf("call %d: %t, %+v", i, ok, decisions)
		}
	}
	wantTokens(t, l, "a", 2)
	wantTokens(t, l, "b", 9)
}

func TestChargeReportsItsLevelByItself(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	c := newCharge(t, l, "a", 4).(*Charge)
	for i, want := range []float64{10, 6} {
		commands := l.Stats().Commands
		v, err := c.Level(time.Now())
		if err != nil || math.Round(v.Tokens) != want || l.Stats().Commands != commands+uint64(1-i) {
			t.Errorf("level %+v, %v, want %v tokens", v, err, want)
		}
		if _, err := c.Take(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSettleOfACharge(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	c := newCharge(t, l, "a", 4).(*Charge)
	if d, err := c.Take(time.Now()); err != nil || d != granted(6) {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, actual := range []float64{-1, math.NaN(), math.Inf(1)} {
		if err := c.Settle(actual); !errors.Is(err, tb.ErrInvalidCost) {
			t.Errorf("%v tokens: %v", actual, err)
		}
	}
	if err := c.Settle(0); err != nil {
		t.Error(err)
	}
	wantTake(t, l, "a", 10, granted(0))
	if s := l.Stats(); s.UnpaidTokens > 0 || s.Reservations > 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// A charge with an invalid argument returns its error from each call, sends no command and takes
// nothing, also from the buckets beside it.
func TestInertCharges(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	memory, err := cas.NewBucket(slow)
	if err != nil {
		t.Fatal(err)
	}
	inMemory, _ := memory.Charge(1)
	var inert []tb.Charge
	var errs []error
	for _, cost := range []float64{0, -5, math.NaN(), math.Inf(1), math.Inf(-1)} {
		c, err := l.Charge("a", cost)
		inert, errs = append(inert, c), append(errs, err)
	}
	for _, within := range []time.Duration{-1, math.MinInt64} {
		c := newCharge(t, l, "a", 4).(*Charge)
		if d, err := c.Take(time.Now()); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		c.MayWait(within)
		c.Cancel() // of what it has taken before
		_, err := c.Peek(time.Now())
		if bad := new(tb.ConfigError); !errors.As(err, &bad) || bad.Field != "within" {
			t.Errorf("MayWait(%v): %v", within, err)
		}
		inert, errs = append(inert, c), append(errs, err)
	}
	for _, spoil := range []func(*Charge){
		func(c *Charge) { c.Keep(math.NaN()) },
		func(c *Charge) { c.HoldOnRefusal(-1) },
		func(c *Charge) { c.Keep(1); c.MayWait(time.Hour); c.Keep(0) },
		func(c *Charge) { c.HoldOnRefusal(time.Hour); c.MayWait(time.Hour) },
		func(c *Charge) { c.MayWait(time.Hour); c.Keep(1); c.MayWait(0) },
		func(c *Charge) { c.MayWait(time.Hour); c.HoldOnRefusal(time.Hour) },
	} {
		c := newCharge(t, l, "a", 4).(*Charge)
		spoil(c)
		_, err := c.Peek(time.Now())
		inert, errs = append(inert, c), append(errs, err)
	}
	commands := l.Stats().Commands
	for i, c := range inert {
		for _, charges := range [][]tb.Charge{
			{c}, {newCharge(t, l, "b", 1), c}, {c, &inMemory}, {&inMemory, newCharge(t, l, "b", 1), c},
		} {
			_, _, err := TakeAll(t.Context(), time.Now(), charges, nil)
			if errs[i] == nil || !errors.Is(err, errs[i]) {
				t.Errorf("charge %d in %d: error %v, want %v", i, len(charges), err, errs[i])
			}
		}
		c := c.(*Charge)
		_, peeked := c.Peek(time.Now())
		_, _, took := tb.TakeAll(time.Now(), []tb.Charge{c}, nil)
		c.MayWait(time.Hour)
		c.Cancel()
		if err := c.Settle(1); err != nil || c.Delay() != 0 ||
			!errors.Is(peeked, errs[i]) || !errors.Is(took, errs[i]) {
			t.Errorf("charge %d: %v, %v, %v, a delay of %v", i, err, peeked, took, c.Delay())
		}
	}
	if n := l.Stats().Commands; n != commands {
		t.Errorf("%d commands for charges that are inert", n-commands)
	}
	for _, key := range []string{"a", "b"} {
		wantTokens(t, l, key, 10)
	}
	if v := memory.Level(); v.Tokens != 10 {
		t.Errorf("in memory: %+v, want 10 tokens", v)
	}
}

// A charge that may not wait is refused without a command, as a call is. One that may wait counts
// as a reservation.
func TestChargeThatMayWaitOrNot(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithMaxDenial(patient))
	wantTake(t, l, "a", 10, granted(0))
	c := newCharge(t, l, "a", 1).(*Charge)
	c.MayWait(time.Hour)
	c.MayWait(0)
	if d, err := c.Take(time.Now()); err != nil || d.Allowed || l.Stats().RefusedLocally != 1 {
		t.Errorf("%+v, %v: %+v", d, err, l.Stats())
	}
	c.MayWait(tb.Never) // then it is a reservation
	if d, err := c.Take(time.Now()); err != nil || !d.Allowed || c.Delay() == 0 {
		t.Errorf("one that may wait: %+v, %v", d, err)
	}
	c.Cancel()
	if s := l.Stats(); s.Reservations != 1 || s.Cancellations != 1 {
		t.Errorf("Stats: %+v", s)
	}
}

// Each call of Reserve, Settle and Cancel is one command, and shares one with others.
func TestCommandsOfReservations(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	commands := func(f func()) uint64 {
		before := l.Stats().Commands
		f()
		return l.Stats().Commands - before
	}
	var r tb.Reservation
	for i, f := range []func(){
		func() { r, _ = l.Reserve(t.Context(), "a", 6) },
		func() { _ = r.Settle(2) }, // 8 tokens
		func() { r, _ = l.Reserve(t.Context(), "a", 3) },
		func() { _ = r.Settle(20) }, // −10 tokens, and 2 are unpaid
		func() { r, _ = l.Reserve(t.Context(), "c", 6) },
		func() { _ = l.Reset(t.Context(), "c") },
		func() { _ = r.Settle(2) }, // there is nothing to give back
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
	wantTokens(t, l, "a", -10)
	if s := l.Stats(); s.UnpaidTokens < 1.9 || s.UnpaidTokens > 2 || s.Cancellations != 1 {
		t.Errorf("Stats: %+v", s)
	}
	wantTokens(t, l, "b", 0)
	// An actual cost has no bound. The debt is a capacity at most.
	if r, _ = l.Reserve(t.Context(), "d", 4); !r.Allowed {
		t.Fatal(r)
	}
	if err := r.Settle(1e12); err != nil {
		t.Error(err)
	}
	wantTokens(t, l, "d", -10)
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
	wantTake(t, c, "a", 6, granted(0))
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
	if err := slowly.Wait(late{t.Context()}, "b", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	wantTokens(t, slowly, "b", 10)
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
	wantTokens(t, slowly, "a", 0)
	if err := slowly.Wait(t.Context(), "a", 0); !errors.Is(err, tb.ErrInvalidCost) {
		t.Errorf("no cost: %v", err)
	}
}

// late is a context whose deadline has passed, and whose timer has not fired.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

func TestReservationsWithoutTheServer(t *testing.T) {
	s := redistest.Start(t)
	var all []*Limiter
	for i, p := range []Policy{Refuse, Allow, LocalShare(2)} {
		all = append(all, newLimiter(t, dial(t, s), slow, WithPolicy(p), WithPrefix(strconv.Itoa(i))))
	}
	signal(t, s, syscall.SIGKILL)
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
	large := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}
	l := newLimiter(t, dial(t, redistest.Start(t)), large, WithPolicy(LocalShare(2)))
	wantTake(t, l, "a", 998, granted(2))
	if d, err := l.AllowN(t.Context(), "a", 900); err != nil || d.Allowed {
		t.Errorf("900 of 2 tokens: %+v, %v", d, err)
	}
	small := tb.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}
	if err := l.SetLimit(small); err != nil || l.Limit() != small || l.share.Limit().Capacity != 5 {
		t.Fatalf("%v, %+v", err, l.Limit())
	}
	wantTake(t, l, "a", 2, granted(0))
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
