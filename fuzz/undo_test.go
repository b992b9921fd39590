package fuzz

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

// attempt is a grant of a program on one bucket.
type attempt struct {
	tb.Held
	read time.Time
	at   time.Time // the slot of a reservation
	cost *big.Rat  // 0 if it was undone
}

// withoutUndone returns the ideal bucket from which undone attempts took nothing. They have changed
// its time, unless they were in debt.
func withoutUndone(limit tb.Limit, attempts []attempt) (b *ideal.Bucket, grants []*judged) {
	b = ideal.New(limit)
	for _, a := range attempts {
		if a.cost.Sign() > 0 || a.at.Equal(a.read) {
			b.Take(a.at, a.cost)
			grants = append(grants, &judged{
				slot: b.Slot(), cost: a.cost, taken: b.Slot(), actual: a.cost, unpaid: new(big.Rat),
			})
		}
	}
	return b, grants
}

// undoer runs a program of charges and reservations on one bucket, and undoes some of them in any
// order.
type undoer struct {
	t        *testing.T
	limit    tb.Limit
	limiter  limiter
	now      time.Time
	attempts []attempt
}

func (u *undoer) run(in input) {
	for calls := 0; len(in) > 0 && calls < 60; calls++ {
		if in.below(3) == 0 && len(u.attempts) > 0 {
			u.attempts[len(u.attempts)-1-in.below(len(u.attempts))].undo()
			continue
		}
		step := in.step(u.limit)
		if then := u.now.Add(step); then.After(earliest) && then.Before(latest) {
			u.now = then
		}
		n := 1 + int(uint64(u.limit.Capacity)*uint64(in.byte())/255)
		a, before, ok := u.take(n, in.below(3))
		if !ok {
			continue
		}
		if in.below(4) == 0 {
			a.undo()
			if after := u.level(); after != before {
				u.t.Fatalf("%T, limit %+v: the level was %+v, and after the undo it is %+v",
					u.limiter, u.limit, before, after)
			}
		}
		u.attempts = append(u.attempts, a)
	}
	b, grants := withoutUndone(u.limit, u.attempts)
	if why := checkBound(b, grants, ideal.Rate(u.limit)); why != "" { // slots are rounded up to ns
		u.t.Fatalf("C1: %T, limit %+v: %s", u.limiter, u.limit, why)
	}
}

// undo undoes a grant.
func (a *attempt) undo() {
	a.Cancel()
	a.cost = new(big.Rat)
}

func (u *undoer) level() tb.Level {
	l, err := u.limiter.Level(u.t.Context(), "a")
	if err != nil {
		u.t.Fatal(err)
	}
	return l
}

// take takes n tokens. kind is 0 for a charge, 1 for a charge that may wait, and 2 for a
// reservation. take checks a grant with the ideal bucket from which the undone grants took nothing.
func (u *undoer) take(n, kind int) (a attempt, before tb.Level, ok bool) {
	before = u.level()
	var d tb.Decision
	var delay time.Duration
	if kind == 2 {
		r, err := u.limiter.Reserve(u.t.Context(), "a", float64(n))
		if err != nil {
			u.t.Fatal(err)
		}
		a.Held, d, delay = r, r.Decision, r.Delay()
	} else {
		d, delay, a.Held = u.charge(n, kind == 1)
	}
	if !d.Allowed {
		return a, before, false
	}
	a.read, a.at, a.cost = u.now, u.now.Add(delay), tokens(n)
	b, _ := withoutUndone(u.limit, u.attempts)
	held := b.Tokens(a.at)
	most := new(big.Rat).Add(held, b.Quantum())
	if most.Add(most, ideal.Rate(u.limit)); most.Cmp(a.cost) < 0 { // slots are rounded up to ns
		u.t.Fatalf("%T, limit %+v: granted %d after %v; without the undone grants the bucket holds %v",
			u.limiter, u.limit, n, delay, held.FloatString(9))
	}
	return a, before, true
}

func (u *undoer) charge(n int, wait bool) (tb.Decision, time.Duration, tb.Held) {
	c, err := u.limiter.Charge("a", float64(n))
	if err != nil {
		u.t.Fatal(err)
	}
	if wait {
		c.MayWait(tb.Never)
	}
	want, _ := c.Peek(u.now)
	d, err := c.Take(u.now)
	if err != nil || d != want {
		u.t.Fatalf("limit %+v: Take returned %+v, %v; Peek returned %+v", u.limit, d, err, want)
	}
	return d, c.Delay(), c
}

// undoAll runs the program in the bytes of in on both implementations.
func undoAll(t *testing.T, in input) {
	limit := in.limit()
	var u undoer
	for kind := range 2 {
		l := newLimiter(t, kind, limit, tb.WithClock(func() time.Time { return u.now }))
		u = undoer{t: t, limit: limit, limiter: l, now: time.Unix(0, 0)}
		u.level() // starts the clock
		u.run(in)
	}
}

func FuzzUndo(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { undoAll(t, data) })
}

func TestUndoOnRandomPrograms(t *testing.T) {
	eachProgram(t, *programs/10, func(rng *rand.ChaCha8) { undoAll(t, randomInput(rng, 200)) })
}
