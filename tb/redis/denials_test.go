package redis

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// The clock of the server may be faster by a thousandth, and each reading is cut to a µs.
func TestLatestTimeOfTheServer(t *testing.T) {
	w := sight{state: state{now: noon}, sent: 1000, received: 3000}
	for local, want := range map[int64]uint64{3000: 2004, 3999: 3003, 4000: 3005} {
		if got := w.latest(local) - noon; got != want {
			t.Errorf("%d µs after the command, the server's clock shows %d at most, want %d",
				local-w.sent, got, want)
		}
	}
}

// TakeAll sends nothing if it is known that one of the buckets cannot pay, also beside a bucket in
// the process.
func TestTakeAllRefusesLocally(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithMaxDenial(patient))
	local, err := cas.New[string](slow)
	if err != nil {
		t.Fatal(err)
	}
	wantTake(t, l, "empty", 10, granted(0))
	commands := l.Stats().Commands
	for range 200 {
		here, err := local.Charge("here", 10)
		if err != nil {
			t.Fatal(err)
		}
		decisions, ok := takeAll(t, newCharge(t, l, "full", 1), &here, newCharge(t, l, "empty", 1))
		if ok || decisions[0] != (tb.Decision{}) || !decisions[1].Allowed ||
			decisions[2].Allowed || decisions[2].RetryAfter <= 0 {
			t.Fatalf("%+v, %t", decisions, ok)
		}
	}
	if s := l.Stats(); s.Commands != commands || s.RefusedLocally != 200 {
		t.Errorf("%d commands, want none; Stats: %+v", s.Commands-commands, s)
	}
}

// A command that decides buckets of several limiters shows each of them at its own limiter's time:
// what it has shown would otherwise count for as long as the limiters were made apart.
func TestLimitersMadeApartRememberAtOneTime(t *testing.T) {
	old := newLimiter(t, dial(t, redistest.Start(t)), slow, WithPrefix("old:"))
	for range 100 {
		wantTake(t, old, "time passes", 0.01, granted(9))
	}
	l := newLimiter(t, old.client, slow)
	from := l.local()
	takeAll(t, newCharge(t, old, "a", 10), newCharge(t, l, "a", 10))
	v, ok := l.denials.seen.Load("a")
	if to := l.local(); !ok || v.sent < from || v.received > to {
		t.Errorf("%+v, want a bucket that was seen from %d to %d", v, from, to)
	}
}

// A bucket is remembered as the calls have left it, and not as they would have.
func TestWhatWasTakenIsRemembered(t *testing.T) {
	c, resume := startCrowd(t, slow)
	l := c.l
	l.denial = patient
	take := func(key string, n int, want tb.Decision) {
		t.Helper()
		wantOutcome(t, c.on(key).call(t.Context(), n), want)
	}
	first := c.send(t.Context(), 5)
	more, all := c.join(t.Context(), 6), c.join(t.Context(), 5)
	resume()
	wantOutcome(t, first, granted(5))
	wantOutcome(t, more, refused(0, 5))
	wantOutcome(t, all, granted(0))
	local := l.Stats().RefusedLocally
	if take("a", 1, refused(0, 0)); l.Stats().RefusedLocally != local+1 {
		t.Error("after a refusal and a grant, the bucket is not known to be empty")
	}

	// The bucket of a group that was refused keeps its tokens.
	if _, ok := takeAll(t, newCharge(t, l, "b", 10), newCharge(t, l, "a", 1)); ok {
		t.Error("a group with an empty bucket is granted")
	}
	take("b", 10, granted(0))

	// The server could not write a grant, by itself or after a refusal.
	var operator rueidis.Client // with a connection of its own, because the server pauses the other
	for addr := range l.client.Nodes() {
		operator = dial(t, &redistest.Server{Addr: addr})
	}
	do(t, operator, "CONFIG", "SET", "maxmemory", "1")
	resume = pause(t, operator)
	c = c.on("c")
	first = c.send(t.Context(), 9)
	more, all = c.join(t.Context(), 11), c.join(t.Context(), 10)
	resume()
	wantCause(t, (<-first).err, CauseOutOfMemory)
	wantOutcome(t, more, refused(tb.Never, 10))
	wantCause(t, (<-all).err, CauseOutOfMemory)
	do(t, operator, "CONFIG", "SET", "maxmemory", "0")
	take("c", 10, granted(0))
}

func TestResetForgetsDenials(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	for range 3 {
		wantTake(t, l, "a", 10, granted(0))
		decide(t, l, "a", ByDenialCache)
		if err := l.Reset(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	// The reply of a command that was sent before the reset comes after it.
	old := l.denials.of("a").Load()
	late := newSight(l, newState(1, l.layout.Load().capacity, 1), l.local(), l.local(), old)
	resets := l.denials.of("a")
	during := late
	during.resets = resets.Add(1)
	l.remember("a", during, l.layout.Load().scale)
	if _, ok := l.isDenied("a", l.layout.Load().scale); ok {
		t.Error("a reply counts during a reset")
	}
	resets.Add(resetEnds)
	l.remember("a", late, l.layout.Load().scale)
	if _, ok := l.isDenied("a", l.layout.Load().scale); ok {
		t.Error("a reply from before the reset counts")
	}
}

func TestDenialEnds(t *testing.T) {
	c := dial(t, redistest.Start(t))
	for _, tt := range []struct {
		limit  tb.Limit
		denial time.Duration
		want   int64 // µs
	}{
		{slow, time.Second, 1_000_000},
		{slow, 3 * time.Second, 3_000_000},
		{perSecond(10, 2), time.Second, 500_000},
		{perSecond(10, 2), 0, 0},
	} {
		l := newLimiter(t, c, tt.limit, WithMaxDenial(tt.denial))
		sent := l.local()
		empty := state{time: 1_000_000, now: 1_000_000, deficit: l.layout.Load().capacity}
		l.remember("a", newSight(l, empty, sent, sent, 0), l.layout.Load().scale)
		v, _ := l.denials.seen.Load("a")
		if tt.want == 0 {
			if v != nil {
				t.Errorf("%v: %+v", tt.denial, v.sight)
			}
			continue
		}
		if until := v.until - sent; until != tt.want {
			t.Errorf("%+v, %v: ends after %d µs, want %d", tt.limit, tt.denial, until, tt.want)
		}
		if l.denials.holds("a", v, v.until) || !l.denials.holds("a", v, v.until-1) {
			t.Errorf("does not end at %d", v.until)
		}
	}
}

// Replies of commands that were under way at the same time may come in another order.
func TestOlderReplyDoesNotReplaceANewerOne(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), perSecond(10, 1)) // 10⁶ units a token
	remember := func(time, deficit, now uint64) {
		w := newSight(l, newState(time, deficit, now), l.local(), l.local(), 0)
		l.remember("a", w, 10*l.layout.Load().scale)
	}
	for _, tt := range []struct {
		name               string
		time, deficit, now uint64
		kept               bool
	}{
		{"first", 1000, 5_000_000, 1000, true},
		{"taken in the same µs", 1000, 6_000_000, 1000, true},
		{"before that", 1000, 5_000_000, 1000, false},
		{"refilled", 2000, 5_999_000, 2000, true},
		{"before the refill", 1000, 6_000_000, 1000, false},
		{"taken when the clock was set back", 2000, 6_999_000, 1500, true},
		{"before that, at a later time", 3000, 5_998_000, 3000, false},
		{"full", 7_001_000, 0, 8_000_000, true},
	} {
		remember(tt.time, tt.deficit, tt.now)
		v, _ := l.denials.seen.Load("a")
		got := v.state
		if kept := got == newState(tt.time, tt.deficit, tt.now); kept != tt.kept {
			t.Errorf("%s: the denial is %+v", tt.name, got)
		}
	}
}

func TestDenialsAreBounded(t *testing.T) {
	l := newLimiter(t, unconnected{}, slow)
	m := l.layout.Load()
	remember := func(key string) {
		w := newSight(l, newState(noon, m.capacity, noon), l.local(), l.local(), 0)
		l.remember(key, w, m.scale)
	}
	for i := range maxDenials {
		remember(strconv.Itoa(i))
	}
	if n := l.denials.seen.Size(); n != maxDenials {
		t.Errorf("%d keys, want %d", n, maxDenials)
	}
	long := strings.Repeat("a", 1<<20)
	remember(long)
	_, ok := l.isDenied(long, m.scale)
	if _, whole := l.denials.seen.Load(long); !ok || l.denials.seen.Size() != 1 || whole {
		t.Errorf("%d keys, and the last is known: %t, whole: %t", l.denials.seen.Size(), ok, whole)
	}
}

func TestLocalRefusalAllocatesNothing(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithMaxDenial(patient))
	if _, err := l.AllowN(t.Context(), "a", 10); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Allow(ctx, "a") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s := l.Stats(); s.RefusedLocally < 1000 {
		t.Errorf("Stats: %+v", s)
	}
}

// A call by another tier may leave the bucket with more than its rate would have brought by then.
func TestDenialEndsWithACallOfAnotherTier(t *testing.T) {
	slow := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithMaxDenial(patient))
	fast, err := l.Tier(perSecond(10, 1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	wantTake(t, l, "a", 10, granted(0))
	decide(t, l, "a", ByDenialCache)
	for d := (tb.Decision{}); d.Remaining < 5; { // until a command takes longer than 6 tokens
		if d, err = fast.Allow(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := l.Allow(t.Context(), "a"); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

// A reply that is processed late does not replace what a later command of another tier has shown.
func TestLateReplyOfAnotherTierIsNotRemembered(t *testing.T) {
	l := newLimiter(t, unconnected{}, slow, WithMaxDenial(patient))
	fast, err := l.Tier(perSecond(10, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []*Limiter{fast, l} {
		m, now := of.layout.Load(), noon+2000-uint64(1000*i)
		l.remember("a", newSight(of, newState(now, m.capacity, now), l.local(), l.local(), 0), m.scale)
	}
	if _, ok := l.isDenied("a", l.layout.Load().scale); ok {
		t.Error("the bucket of the first command counts after the second one")
	}
}

// A refusal that is known costs a look no command, but a cost that may wait does.
func TestKnownRefusalIsPeekedLocally(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow)
	wantTake(t, l, "a", 10, granted(0))
	before := l.Stats().Commands
	takes, waits := newCharge(t, l, "a", 2), newCharge(t, l, "a", 2)
	waits.(*Charge).MayWait(tb.Never)
	if d, err := l.Peek(t.Context(), "a"); err != nil || d.Allowed {
		t.Errorf("Peek: %+v, %v", d, err)
	}
	if d, err := takes.Peek(time.Now()); err != nil || d.Allowed || l.Stats().Commands != before {
		t.Errorf("a charge: %+v, %v, %d commands", d, err, l.Stats().Commands-before)
	}
	if d, err := waits.Peek(time.Now()); err != nil || !d.Allowed || l.Stats().Commands != before+1 {
		t.Errorf("one that may wait: %+v, %v, %d commands", d, err, l.Stats().Commands-before)
	}
}
