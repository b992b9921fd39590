package redis

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

var hot = tb.Limit{Capacity: 1_000_000, Tokens: 1000, Per: time.Second}

func newLeased(t testing.TB, h time.Duration, opts ...Option) *Limiter {
	t.Helper()
	return newLimiter(t, dial(t, redistest.Start(t)), hot, append(opts, WithLease(h))...)
}

// Callers of three processes share a bucket of a live server. They are granted no more than the
// bound, and at least a full bucket.
func TestLeasesUnderLoad(t *testing.T) {
	server := redistest.Start(t)
	limit, h := perSecond(5000, 20_000), 20*time.Millisecond
	var granted, leased atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	var nodes []*Limiter
	for range 3 {
		l := newLimiter(t, dial(t, server), limit, WithLease(h))
		nodes = append(nodes, l)
		for range 8 {
			wg.Go(func() {
				for range 1000 {
					if d, err := l.Allow(t.Context(), "a"); err != nil {
						t.Error(err)
					} else if d.Allowed {
						granted.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	elapsed := time.Since(start)
	var claimed, returned float64
	for _, l := range nodes {
		l.Close()
		s := l.Stats()
		leased.Add(int64(s.Leased))
		claimed, returned = claimed+s.ClaimedTokens, returned+s.ReturnedTokens
	}
	most := 5000 + 20_000*elapsed.Seconds()
	if n := float64(granted.Load()); n > most || n < 4600 || leased.Load() == 0 {
		t.Errorf("%v grants in %v, want 4600 to %v; %d were leased", n, elapsed, most, leased.Load())
	}
	if float64(leased.Load())+returned > claimed {
		t.Errorf("%d spent and %v returned of %v claimed", leased.Load(), returned, claimed)
	}
	t.Logf("%d grants in %v, %d leased, %v returned", granted.Load(), elapsed, leased.Load(), returned)
}

func TestLeasedCallAllocatesNothing(t *testing.T) {
	l := newLeased(t, time.Hour/100)
	for range 5_000 {
		allow1(t, l)
	}
	if n := testing.AllocsPerRun(100, func() { allow1(t, l) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func allow1(t testing.TB, l *Limiter) {
	if d, err := l.Allow(t.Context(), "a"); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
}

func TestLeaseIsGivenBack(t *testing.T) {
	for _, end := range []string{"sweep", "renewal", "Close"} {
		t.Run(end, func(t *testing.T) {
			// The bucket is not full again before the end, however slow the machine is.
			limit := tb.Limit{Capacity: 1_000_000, Tokens: 1, Per: time.Hour}
			l := newLimiter(t, dial(t, redistest.Start(t)), limit, WithLease(3*time.Hour))
			now := int64(0)
			sweepByHand(&l.leases)
			l.leases.now = func() int64 { return now }
			for range 100 {
				allow1(t, l)
			}
			leased := newCharge(t, l, "a", 9)
			takeAll(t, leased)
			s := l.Stats()
			left := s.ClaimedTokens - float64(s.Leased) - 8
			if left < 10 {
				t.Fatalf("%v tokens left, want more for this test", left)
			}
			now += l.leases.life
			size := latest(l).size
			switch end {
			case "sweep":
				l.leases.sweep(false)
				if n := l.leases.keys.Size(); n != 0 {
					t.Errorf("%d leases after the sweep", n)
				}
				leased.Cancel()
				wantTokens(t, l, "a", 999_897)
			case "renewal":
				allow1(t, l)
				token := l.layout.Load().scale
				if got, want := latest(l).size, size/2/token*token; got != want {
					t.Errorf("a lease that was not used up has %d units after %d, want %d", got, size, want)
				}
			case "Close":
				l.Close()
			}
			if s := l.Stats(); s.ReturnedTokens != left {
				t.Errorf("%v tokens were given back, want %v", s.ReturnedTokens, left)
			}
		})
	}
}

// A call for all tokens brings the lease back first. A call for more would be refused with it too.
func TestCallForAllTokensEndsTheLease(t *testing.T) {
	for more, part := range map[int]float64{0: 1, 1: 0} {
		l := newLeased(t, time.Minute)
		sweepByHand(&l.leases)
		for range 100 {
			allow1(t, l)
		}
		s, m := l.Stats(), l.layout.Load()
		left := s.ClaimedTokens - float64(s.Leased)
		d, err := l.AllowN(t.Context(), "a", float64(int(m.capacity/m.scale)+more))
		if got := l.Stats().ReturnedTokens; err != nil || d.Allowed || left < 10 || got != part*left {
			t.Errorf("%d tokens more: %+v, %v, %v of %v were given back", more, d, err, got, left)
		}
	}
}

// Without a place in the table, a call goes to the server.
func TestKeyWithoutALease(t *testing.T) {
	l := newLeased(t, time.Minute)
	l.leases.closed.Store(true)
	for range 10 {
		allow1(t, l)
	}
	if s := l.Stats(); s.Leased > 0 || s.Granted != 10 {
		t.Errorf("Stats: %+v", s)
	}
	l.leases.closed.Store(false)
	decide(t, l, strings.Repeat("a", longest+1), ByServer)
	if l.leases.keys.Size() > 0 {
		t.Error("the table has a long key")
	}
}

// newLeases returns a limiter with a leased token for each of so many keys.
func newLeases(t *testing.T, c rueidis.Client, keys int) *Limiter {
	l := newLimiter(t, c, slow, WithLease(48*time.Hour))
	for i := range 2 * keys { // the second call on a key takes a token ahead
		decide(t, l, strconv.Itoa(i%keys), ByServer)
	}
	return l
}

// One of the keys has a foreign value, whose error concerns no other lease. The second of two Close
// calls waits for what the first one gives back.
func TestCloseSharesCommands(t *testing.T) {
	for _, state := range []BreakerState{BreakerClosed, BreakerRecovering, BreakerOpen} {
		const keys = 200
		l := newLeases(t, dial(t, redistest.Start(t)), keys)
		do(t, l.client, "SET", l.name("7"), "foreign")
		before, b := l.Stats(), &l.nodes[0].breaker
		b.state, b.most, b.probe, b.cause = state, leastInFlight, math.MaxInt64, errTest
		var all sync.WaitGroup
		for range 2 {
			all.Go(l.Close)
		}
		all.Wait()
		s := l.Stats()
		if n := s.Commands - before.Commands; n > keys/4 && state != BreakerRecovering ||
			s.ReturnedTokens != keys-1 {
			t.Errorf("%v: %d commands, and %v tokens were given back, want %d",
				state, n, s.ReturnedTokens, keys-1)
		}
	}
}

func TestSweepsEndWithTheLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(unconnected{}, hot, WithLease(time.Second))
		if err != nil || l.timeout != 50*time.Millisecond { // the default
			t.Fatal(err, l.timeout)
		}
		ls := &l.leases
		ls.get("a").claim.Store(&claim{end: ls.now() + ls.life*3/2})
		for i, want := range []int{1, 0} {
			time.Sleep(time.Second)
			synctest.Wait()
			if n := ls.keys.Size(); n != want {
				t.Errorf("%d leases after %d s, want %d", n, i+1, want)
			}
		}
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if ls.timer != nil {
			t.Error("the sweeps go on without a lease")
		}
	})
}

// A store refuses no charge that a lease can pay, although it knows that the bucket is empty.
func TestStoreSpendsALease(t *testing.T) {
	store, err := NewStore(dial(t, redistest.Start(t)), WithLease(2*time.Minute),
		WithMaxDenial(patient), WithTimeout(patient))
	if err != nil {
		t.Fatal(err)
	}
	limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Minute}
	all, err := store.Limiters("rule", []tb.Limit{limit})
	if err != nil {
		t.Fatal(err)
	}
	l := all[0].(*Limiter)
	defer l.Close()
	take := func(keys ...string) bool {
		var charges []tb.Charge
		for _, key := range keys {
			charges = append(charges, newCharge(t, l, key, 1))
		}
		_, allowed := takeAll(t, charges...)
		return allowed
	}
	for range 40 {
		take("a")
	}
	left := latest(l).left.Load() / l.layout.Load().scale
	other := newLimiter(t, l.client, limit, WithLease(2*time.Minute), WithPrefix(l.prefix))
	for d := (tb.Decision{Allowed: true}); d.Allowed; { // it drains the bucket
		if d, err = other.Allow(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if take("a", "b") || l.Stats().RefusedLocally > 0 {
		t.Fatal("two charges are granted, or refused without a command")
	}
	granted := uint64(0)
	for take("a") {
		granted++
	}
	if granted != left || left == 0 {
		t.Errorf("%d calls were granted by a lease of %d", granted, left)
	}
	if n := l.Stats(); take("a") || take("a", "b") || l.Stats().Commands != n.Commands {
		t.Errorf("%d commands after the lease", l.Stats().Commands-n.Commands)
	}
}

func TestUndoOfALeasedCharge(t *testing.T) {
	l := newLeased(t, time.Minute)
	for range 100 {
		allow1(t, l)
	}
	commands := l.Stats().Commands
	c := newCharge(t, l, "a", 1)
	before, err := c.Take(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.Cancel()
	after, err := c.Take(time.Now())
	if err != nil || before != after || l.Stats().Commands != commands {
		t.Errorf("%+v, then %+v, %v, with %d commands", before, after, err, l.Stats().Commands-commands)
	}
}

func TestLeasesThatDoNotPay(t *testing.T) {
	c := dial(t, redistest.Start(t))
	for _, tt := range []struct {
		limit tb.Limit
		h     time.Duration
		pays  bool
	}{
		{perSecond(100, 20), 100 * time.Millisecond, true},
		{perSecond(100, 20), 99 * time.Millisecond, false},
		{perSecond(4, 20), 100 * time.Millisecond, true},
		{perSecond(3, 20), 100 * time.Millisecond, false},
		{perSecond(1, 1), time.Hour, false},
		{perSecond(1_000_000, 1_000_000_000), 1000 * time.Hour, false},
	} {
		l := newLimiter(t, c, tt.limit, WithLease(tt.h))
		shrunk := layoutOf(tt.limit).capacity - l.layout.Load().capacity
		if got := l.layout.Load().leased; got != tt.pays || got != (shrunk > 0) {
			t.Errorf("%+v with leases of %v: leases %t, capacity less by %d units",
				tt.limit, tt.h, got, shrunk)
		}
	}
	var cfg *tb.ConfigError
	_, err := New(c, hot, WithLease(time.Millisecond-1))
	if !errors.As(err, &cfg) || cfg.Field != "WithLease" {
		t.Errorf("got error %v, want a *tb.ConfigError for WithLease", err)
	}
	newLimiter(t, c, hot, WithLease(time.Millisecond))
}

// newSpent returns a limiter whose lease on the key "a" is spent, so that the next call renews it,
// and another client of its server.
func newSpent(t *testing.T) (l *Limiter, operator rueidis.Client) {
	t.Helper()
	s := redistest.Start(t)
	l = newLimiter(t, dial(t, s), hot, WithLease(time.Minute))
	for range 100 {
		allow1(t, l)
	}
	for !latest(l).isEmpty() {
		allow1(t, l)
	}
	return l, dial(t, s)
}

func latest(l *Limiter) *claim {
	x, _ := l.leases.keys.Load("a")
	return x.claim.Load()
}

// renewing makes a call that renews the lease of a paused server. Its command is under way when
// renewing returns.
func renewing(ctx context.Context, l *Limiter) <-chan outcome {
	c := crowd{l: l, key: "a"}
	return c.send(ctx, 1)
}

// A caller that hangs up does not cost the tokens that its command takes for later calls. It
// returns with the reply.
func TestLeaseStaysWhenItsCallerLeaves(t *testing.T) {
	l, operator := newSpent(t)
	resume := pause(t, operator)
	ctx, cancel := context.WithCancel(t.Context())
	left := renewing(ctx, l)
	cancel()
	resume()
	if o := <-left; o.err != nil || !o.Allowed {
		t.Errorf("the call: %+v", o)
	}
	s := l.Stats()
	for range 50 {
		allow1(t, l)
	}
	if n := l.Stats(); n.Commands != s.Commands || n.Leased != s.Leased+50 {
		t.Errorf("%d commands for 50 calls, and %d were leased", n.Commands-s.Commands, n.Leased-s.Leased)
	}
}

func TestCanceledCallDoesNotRenewALease(t *testing.T) {
	l, _ := newSpent(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCause(t, failure(ctx, t, l, "a"), CauseCanceled)
	x, _ := l.leases.keys.Load("a")
	if len(x.busy) > 0 || !latest(l).isEmpty() {
		t.Error("a canceled call renewed the lease")
	}
}

func TestCloseGivesBackALeaseThatIsUnderWay(t *testing.T) {
	l, operator := newSpent(t)
	resume := pause(t, operator)
	call := renewing(t.Context(), l)
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	for !l.leases.closed.Load() {
		runtime.Gosched()
	}
	resume()
	if o := <-call; o.err != nil || !o.Allowed {
		t.Errorf("the call: %+v", o)
	}
	<-closed
	if s := l.Stats(); s.ReturnedTokens == 0 || s.ClaimedTokens != float64(s.Leased)+s.ReturnedTokens {
		t.Errorf("%v tokens claimed, %d spent, %v returned", s.ClaimedTokens, s.Leased, s.ReturnedTokens)
	}
}

// A lease that was taken from the bucket before a reset would add to the bucket after it, and
// before a hold it would be spent during the hold.
func TestResetAndHoldDropALeaseThatIsUnderWay(t *testing.T) {
	for _, end := range []func(*Limiter) error{
		func(l *Limiter) error { return l.Reset(t.Context(), "a") },
		func(l *Limiter) error { return l.Hold(t.Context(), "a", time.Now().Add(time.Hour)) },
	} {
		l, operator := newSpent(t)
		claimed := l.Stats().ClaimedTokens
		resume := pause(t, operator)
		call := renewing(t.Context(), l)
		ended := make(chan error)
		go func() { ended <- end(l) }()
		for l.waiting("a") == 0 {
			runtime.Gosched()
		}
		resume()
		if o := <-call; o.err != nil || !o.Allowed {
			t.Errorf("the call: %+v", o)
		}
		if err := <-ended; err != nil || l.Stats().ClaimedTokens == claimed || !latest(l).isEmpty() {
			t.Errorf("%v; %d units of a lease from before are left", err, latest(l).left.Load())
		}
	}
}

// After an error, the lease takes nothing ahead until it has grown again: its tokens may be lost.
// What it gives back then is not spent: the server may have it.
func TestLeaseGrowsAnewAfterAnError(t *testing.T) {
	l, operator := newSpent(t)
	allow1(t, l)
	do(t, operator, "CONFIG", "SET", "maxmemory", "1")
	o, _ := l.Decide(t.Context(), "a", float64(latest(l).left.Load()/l.layout.Load().scale+1))
	if wantCause(t, o.Failure, CauseOutOfMemory); !latest(l).isEmpty() {
		t.Errorf("%d units of the lease are left", latest(l).left.Load())
	}
	do(t, operator, "CONFIG", "SET", "maxmemory", "0")
	claimed := l.Stats().ClaimedTokens
	allow1(t, l)
	if n := l.Stats().ClaimedTokens - claimed; n > 1 {
		t.Errorf("%v tokens were claimed after an error", n)
	}
}

// The tokens that a renewal gives back belong to all processes from then on.
func TestTokensOnTheirWayBackAreNotSpent(t *testing.T) {
	l, operator := newSpent(t)
	allow1(t, l)
	s, m, old := l.Stats(), l.layout.Load(), latest(l)
	left := old.left.Load() / m.scale
	resume := pause(t, operator)
	c := crowd{l: l, key: "a"}
	more := c.send(t.Context(), int(left)+1)
	if old.spend(m, m.scale, l.leases.now(), new(result)) || latest(l) == old {
		t.Errorf("%d tokens are given back, and the lease spends one, or a Cancel adds to it", left)
	}
	resume()
	if o := <-more; o.err != nil || !o.Allowed || left == 0 {
		t.Errorf("more than the %d tokens of the lease: %+v", left, o)
	}
	if n := l.Stats().ReturnedTokens - s.ReturnedTokens; n != float64(left) {
		t.Errorf("%v tokens were given back, want %d", n, left)
	}
}

func TestOpenBreakerKeepsWhatALeaseHas(t *testing.T) {
	l, _ := newSpent(t)
	allow1(t, l)
	left := latest(l).left.Load()
	open(l)
	commands := l.Stats().Commands
	o, err := l.Decide(t.Context(), "a", float64(left/l.layout.Load().scale)+1)
	if err != nil || o.By != ByPolicy || o.Failure.Cause != CauseOpen {
		t.Errorf("more than the lease has: %+v, %v", o, err)
	}
	if n := latest(l).left.Load(); n != left || left == 0 || l.Stats().Commands != commands {
		t.Errorf("%d units are left, want %d; %d commands", n, left, l.Stats().Commands-commands)
	}
}

func TestLeasedKeyIsRefusedLocally(t *testing.T) {
	limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Minute}
	l := newLimiter(t, dial(t, redistest.Start(t)), limit, WithLease(2*time.Minute),
		WithMaxDenial(patient))
	granted := 0
	for range 3000 {
		d, err := l.Allow(t.Context(), "a")
		if d.Allowed {
			granted++
		}
		if err != nil || d.Remaining != 998-granted {
			t.Fatalf("%+v, %v after %d grants", d, err, granted)
		}
	}
	s := l.Stats()
	if granted != 998 || s.RefusedLocally < 2000 || s.Commands > 30 || s.Abandoned > 0 {
		t.Errorf("%d granted, want 998; Stats: %+v", granted, s)
	}
}

// The capacity less what the rate supplies in h is a whole number of tokens. So the bucket can pay
// every cost up to it, and has a next token until it is full.
func TestLeasedCapacityIsWhole(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 25, Per: time.Hour} // 2.5 in 6 minutes
	l := newLimiter(t, dial(t, redistest.Start(t)), limit, WithLease(6*time.Minute))
	if d, err := l.AllowN(t.Context(), "a", 7.1); err != nil || d.RetryAfter != tb.Never {
		t.Errorf("7.1 of 7 tokens: %+v, %v", d, err)
	}
	if d, err := l.AllowN(t.Context(), "a", 0.1); err != nil || !d.Allowed {
		t.Errorf("0.1 tokens: %+v, %v", d, err)
	}
	v, err := l.Level(t.Context(), "a")
	if err != nil || v.NextToken != v.Full || v.Tokens > 7 || v.Tokens < 6.9 {
		t.Errorf("%+v, %v", v, err)
	}
}
