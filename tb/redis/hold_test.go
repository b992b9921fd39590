package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

func holds(s *simulator) error {
	b := s.bucket("hold")
	limit := perSecond(10, 1)
	const minute = 60_000_000
	hold := func(now, us uint64) { b.apply(limit, now, item{kind: kindHold, hold: us}) }
	b.want(limit, noon, 4, granted(6))
	hold(noon, minute)
	hold(noon+1, minute/2) // an earlier one
	hold(noon+1, 0)
	held, expiry := b.value()
	if len(held) != 42 || expiry != (noon+minute+10_000_000)/1000+1 {
		b.errorf("the value is %q until %d ms", held, expiry)
	}
	b.want(limit, noon+10_000_000, 3, refused(53*time.Second, 0))
	b.want(limit, noon+minute-1, 1, refused(time.Second+time.Microsecond, 0))
	b.want(limit, noon+minute, 1, refused(time.Second, 0))
	if v, _ := b.value(); v != held {
		b.errorf("a refusal wrote %q, and the value was %q", v, held)
	}
	b.want(limit, noon+minute+2_000_000, 2, granted(0))
	if v, _ := b.value(); len(v) != 35 {
		b.errorf("after the hold, the value is %q", v)
	}
	// A bucket whose own time is ahead is held until then.
	b.fill()
	b.want(limit, noon, 1, granted(9))
	hold(noon-900_000, 1000)
	b.want(limit, noon, 1, refused(time.Second, 0))
	// The range of a time ends.
	b.fill()
	hold(noon, noDeadline)
	b.want(limit, noon, 1, refused((lastInstant-noon+1_000_000)*time.Microsecond, 0))
	b.want(limit, noon, 11, refused(tb.Never, 0))
	// In ten years, a fast rate supplies more than the script counts exactly.
	const years = 87_600 * time.Hour
	b.fill()
	fast := perSecond(10, 10_000)
	b.apply(fast, noon, item{kind: kindHold, hold: uint64(years / time.Microsecond)})
	if e, _ := b.apply(fast, noon, reservation(1e6, 10e6, tb.Never)); e.RetryAfter != years-900e3 {
		b.errorf("Reserve in a long hold: %+v, want a wait of 900 µs less", e.Decision)
	}
	return b.err
}

// A clock that is set back takes the end of a hold along, as far as the last write shows.
func holdClockSetBack(s *simulator) error {
	limit := perSecond(10, 1)
	const minute, hour = 60_000_000, 3_600_000_000
	b := s.bucket("hold, clock")
	b.apply(limit, noon, item{kind: kindHold, hold: minute})
	b.want(limit, noon-hour, 1, refused(61*time.Second, 0))
	b.want(limit, noon-hour+minute+999_999, 1, refused(time.Microsecond, 0))
	b.want(limit, noon-hour+minute+1_000_000, 1, granted(0))
	b.fill()
	b.apply(limit, noon, item{kind: kindHold, hold: minute})
	b.want(limit, noon-1_000_000, 1, refused(62*time.Second, 0)) // a second counts as no step
	b.want(limit, noon, 1, refused(61*time.Second, 0))
	// A hold that has ended holds anew until the first grant after it.
	b.want(limit, noon+minute+1_000_000, 1, granted(0))
	b.want(limit, noon, 1, refused(time.Second, 0))
	return b.err
}

// Of a refused group, the buckets that lack their cost are held, and no other.
func groupHolds(s *simulator) error {
	m := layoutOf(perSecond(10, 1))
	var all []*bucket
	var parts []part
	keep := func(units, keep, us uint64) item {
		return item{kind: kindKeep, units: units * m.scale, keep: keep * m.scale, hold: us}
	}
	const minute = 60_000_000
	for i, it := range []item{
		keep(7, 0, minute), keep(7, 3, minute), keep(4, 0, minute), keep(7, 0, 0), keep(7, 3, 0),
		keep(7, 5, minute), keep(11, 0, minute), // can never be granted
	} {
		b := s.bucket(fmt.Sprint("hold, group ", i))
		b.take(m.limit, noon, 5)
		all, parts = append(all, b), append(parts, m.part(b.key, it))
	}
	all[1].fill() // so that it has the tokens, and not those that must be left
	all[1].take(m.limit, noon, 1)
	run := func(now uint64) {
		if _, err := s.run(now, len(parts), parts...); err != nil {
			all[0].errorf("%w", err)
		}
	}
	run(noon)
	var values []string
	for i, b := range all {
		v, _ := b.value()
		values = append(values, v)
		if (len(v) == 42) != (i < 2) {
			b.errorf("the value is %q", v)
		}
	}
	run(noon + minute/2)
	for i, b := range all {
		if v, _ := b.value(); v != values[i] {
			b.errorf("a refusal of a held bucket wrote %q, and the value was %q", v, values[i])
		}
	}
	all[0].want(m.limit, noon+minute/2, 1, refused(31*time.Second, 0))
	all[2].want(m.limit, noon, 5, granted(0))
	for _, b := range all {
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

func wantHeld(t *testing.T, what string, d tb.Decision, err error, until time.Time) {
	t.Helper()
	early := d.RetryAfter - time.Until(until)
	if err != nil || d.Allowed || d.Remaining > 0 || early.Abs() > time.Minute { // a unit takes 12 ms
		t.Errorf("%s: %+v, %v, want a refusal until %v", what, d, err, until)
	}
}

func bytesOf(t *testing.T, l *Limiter, key string) int64 {
	t.Helper()
	return number(t, l.client, "STRLEN", l.name(key))
}

// The process that holds a bucket spends no lease and no share of it. Another one sees the hold in
// the first reply.
func TestHoldIsObeyed(t *testing.T) {
	s := redistest.Start(t)
	limit := tb.Limit{Capacity: 1_000_000, Tokens: 1000, Per: time.Second}
	var all []*Limiter
	for range 2 {
		all = append(all, newLimiter(t, dial(t, s), limit, WithLease(time.Minute),
			WithPolicy(LocalShare(2)), WithMaxDenial(patient)))
		for range 50 {
			allow1(t, all[len(all)-1])
		}
	}
	l, other := all[0], all[1]
	if latest(l).isEmpty() || latest(other).isEmpty() {
		t.Fatal("there are no leases")
	}
	leased := newCharge(t, l, "a", 1)
	if d, err := leased.Take(time.Now()); err != nil || !d.Allowed || latest(l).isEmpty() {
		t.Fatalf("a charge: %+v, %v", d, err)
	}
	until := time.Now().Add(time.Hour)
	for _, hold := range []time.Time{until, {}, time.Now(), until.Add(-time.Minute)} {
		if err := l.Hold(t.Context(), "a", hold); err != nil {
			t.Fatal(err)
		}
	}
	commands := l.Stats().Commands
	d, err := l.Allow(t.Context(), "a")
	wantHeld(t, "the process that holds", d, err, until)
	takeAll(t, newCharge(t, l, "a", 1), newCharge(t, l, "b", 1))
	if n := l.Stats().Commands; n != commands {
		t.Errorf("%d commands, want none: the hold is known", n-commands)
	}
	leased.Cancel() // gives nothing to a bucket that is held
	c := newCharge(t, other, "a", 1).(*Charge)
	c.Keep(1) // no lease pays it
	d, err = c.Take(time.Now())
	wantHeld(t, "another process", d, err, until)
	d, err = other.Allow(t.Context(), "a") // its lease was lost with the bucket
	wantHeld(t, "the lease of another process", d, err, until)
	v, err := other.Level(t.Context(), "a")
	if err != nil || v.Tokens != 0 || v.NextToken < time.Until(until) || v.Full < v.NextToken {
		t.Errorf("Level: %+v, %v", v, err)
	}
	signal(t, s, syscall.SIGKILL)
	for i, l := range all {
		l.denial = 0 // do not remember, and ask the share
		d, err = l.Allow(t.Context(), "a")
		wantHeld(t, fmt.Sprint("the share of process ", i), d, err, until)
	}
	err = l.Hold(t.Context(), "a", until)
	wantCause(t, err, CauseUnreachable)
	l.Close()
	for _, hold := range []time.Time{until, {}} {
		if err := l.Hold(t.Context(), "a", hold); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// A hold that comes while Wait sleeps takes its tokens, unless its slot is behind the hold.
func TestWaitLooksForAHold(t *testing.T) {
	s := startSimulator(t, bucketsText)
	limit := tb.Limit{Capacity: 1, Tokens: 1, Per: 10 * time.Millisecond}
	b := &bucket{simulator: s, key: "tb:{a}"}
	now, hold, commands := uint64(noon), 50*time.Millisecond, 0
	l, err := s.newLimiter(func() time.Time {
		switch commands++; commands {
		case 3: // Wait looks
			now += 10_000
			b.apply(limit, now, item{kind: kindHold, hold: uint64(hold.Microseconds())})
		case 5: // once more, at its second slot, by a server whose clock is slower
			now += 49_000
		}
		return time.UnixMicro(int64(now))
	}, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	decide(t, l, "a", ByServer)
	start := time.Now()
	if err := l.Wait(t.Context(), "a", 1); err != nil || b.err != nil {
		t.Fatal(err, b.err)
	}
	if d := time.Since(start); commands != 5 || d < 70*time.Millisecond {
		t.Errorf("%d commands, want 5, and Wait returned after %v", commands, d)
	}
	// The context ends before the next hold does.
	commands, hold = 1, 2*time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var refused *tb.WaitError
	if err := l.Wait(ctx, "a", 1); !errors.As(err, &refused) || !refused.Deadline ||
		refused.Wait < 2*time.Hour {
		t.Errorf("a hold beyond the deadline: %v", err)
	}
}

// A refusal holds the bucket once, also if the process knows that the bucket is empty. What it
// knows of the hold refuses later calls.
func TestHoldOnRefusal(t *testing.T) {
	l := newLimiter(t, dial(t, redistest.Start(t)), slow, WithMaxDenial(patient))
	login := func(key string, cost float64) *Charge {
		c := newCharge(t, l, key, cost).(*Charge)
		c.HoldOnRefusal(time.Hour)
		return c
	}
	bytes := func(key string) int64 { return bytesOf(t, l, key) }
	if d, err := login("a", 10).Take(time.Now()); err != nil || d != granted(0) {
		t.Fatalf("%+v, %v", d, err)
	}
	decide(t, l, "a", ByDenialCache)
	if d, err := login("a", 11).Take(time.Now()); err != nil || d.RetryAfter != tb.Never {
		t.Errorf("a cost above the capacity: %+v, %v", d, err)
	}
	until := time.Now().Add(time.Hour + 24*time.Hour) // a token comes in a day
	d, err := login("a", 1).Peek(time.Now())
	if wantHeld(t, "Peek", d, err, until); bytes("a") != 28 {
		t.Error("a Peek holds")
	}
	d, err = login("a", 1).Take(time.Now())
	wantHeld(t, "a login", d, err, until)
	if n := bytes("a"); n != 42 {
		t.Errorf("the value has %d bytes", n)
	}
	commands := l.Stats().Commands
	d, err = login("a", 1).Take(time.Now())
	wantHeld(t, "a login while held", d, err, until)
	if n := l.Stats().Commands; n != commands {
		t.Errorf("%d commands for a hold that is known", n-commands)
	}

	// Of a refused request, the buckets that lack the cost are held.
	until = time.Now().Add(time.Hour)
	wantTake(t, l, "c", 9, granted(1))
	lacks := login("c", 2)
	decisions, ok := takeAll(t, login("b", 2), lacks, newCharge(t, l, "d", 2))
	if ok || !decisions[0].Allowed || !decisions[2].Allowed {
		t.Errorf("%+v, %t", decisions, ok)
	}
	wantHeld(t, "the bucket that lacks the cost", decisions[1], nil, until.Add(48*time.Hour))
	if v, err := lacks.Level(time.Now()); err != nil || v.NextToken < 24*time.Hour {
		t.Errorf("its level: %+v, %v", v, err)
	}
	if bytes("b")+bytes("d") > 0 || bytes("c") != 42 {
		t.Error("another bucket is held, or none")
	}
	if _, ok := takeAll(t, login("e", 10), newCharge(t, l, "f", 10)); !ok {
		t.Fatal("two full buckets refuse")
	}
	for _, key := range []string{"e", "f"} {
		decide(t, l, key, ByDenialCache)
	}
	for range 2 {
		if _, ok := takeAll(t, newCharge(t, l, "f", 1), login("e", 1)); ok || bytes("e") != 42 {
			t.Errorf("beside a charge that is refused locally: %t, %d bytes", ok, bytes("e"))
		}
	}
	commands = l.Stats().Commands
	d, err = login("c", 1).Take(time.Now())
	wantHeld(t, "after TakeAll", d, err, until.Add(24*time.Hour))
	if wantTake(t, l, "b", 10, granted(0)); l.Stats().Commands != commands+1 {
		t.Errorf("the other bucket: %d commands", l.Stats().Commands-commands)
	}
}

// What a kept charge may take is what it is granted and shown, also by a share in an outage.
func TestKeep(t *testing.T) {
	s := redistest.Start(t)
	l := newLimiter(t, dial(t, s), slow, WithMaxDenial(patient), WithPolicy(LocalShare(2)))
	crawler := func(cost float64) *Charge {
		c := newCharge(t, l, "a", cost).(*Charge)
		c.Keep(4)
		return c
	}
	take := func(cost float64, want tb.Decision, by uint64) {
		t.Helper()
		c := crawler(cost)
		peeked, err := c.Peek(time.Now())
		local := l.Stats().RefusedLocally
		d, took := c.Take(time.Now())
		d.RetryAfter = d.RetryAfter.Round(12 * time.Hour)
		if err != nil || took != nil || d != want || peeked.Allowed != want.Allowed ||
			l.Stats().RefusedLocally != local+by {
			t.Errorf("%v tokens: %+v, %+v, %v, %v, want %+v", cost, peeked, d, err, took, want)
		}
	}
	take(7, refused(tb.Never.Round(12*time.Hour), 6), 0)
	take(4, granted(2), 0)
	c := crawler(1)
	if _, err := c.Peek(time.Now()); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Level(time.Now()); err != nil || math.Abs(v.Tokens-2) > 1e-3 {
		t.Errorf("Level: %+v, %v, want 2 tokens", v, err)
	}
	take(3, refused(24*time.Hour, 2), 1) // 6 tokens are known to be left
	wantTake(t, l, "a", 6, granted(0))
	wantTake(t, l, "c", 4, granted(6))
	if err := l.SetLimit(tb.Limit{Capacity: 10, Tokens: 2, Per: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	c = newCharge(t, l, "c", 3).(*Charge)
	c.Keep(4)
	if d, err := c.Peek(time.Now()); err != nil || d.Allowed || bytesOf(t, l, "c") != 35 {
		t.Errorf("a Peek that refuses converts the bucket: %+v, %v", d, err)
	}
	signal(t, s, syscall.SIGKILL)
	l.denial = 0
	c = newCharge(t, l, "b", 3).(*Charge)
	c.Keep(8)
	if d, err := c.Take(time.Now()); err != nil || d.RetryAfter != tb.Never {
		t.Errorf("more than the capacity: %+v, %v", d, err)
	}
	for i, want := range []bool{true, false} { // the share has 5 tokens, and keeps 2 of them
		c = newCharge(t, l, "b", 3).(*Charge)
		c.Keep(4)
		peeked, _ := c.Peek(time.Now())
		d, err := c.Take(time.Now())
		if err != nil || peeked.Allowed != want || d.Allowed != want || d.Remaining != 0 {
			t.Errorf("call %d on the share: %+v, %+v, %v", i, peeked, d, err)
		}
	}
}
