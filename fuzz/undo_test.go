package fuzz

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// attempt is a granted charge of a program on one bucket.
type attempt struct {
	charge tb.Charge
	at     time.Time
	cost   *big.Rat // 0 if it was undone
}

// withoutUndone returns the ideal bucket from which undone attempts took nothing.
func withoutUndone(limit tb.Limit, attempts []attempt) *ideal {
	b := newIdeal(newTimeline(limit))
	for _, a := range attempts {
		b.take(a.at, a.cost)
	}
	return b
}

// undo runs a program of charges and undone charges on one bucket. It checks each grant with an
// ideal bucket from which the undone charges took nothing. A charge that is undone at once may
// change only the time of the bucket.
func undo(t *testing.T, limit tb.Limit, in input, l limiter) {
	now := time.Unix(0, 0)
	var attempts []attempt
	for calls := 0; len(in) > 0 && calls < 60; calls++ {
		if in.below(3) == 0 && len(attempts) > 0 {
			a := &attempts[len(attempts)-1-in.below(len(attempts))]
			a.charge.Undo()
			a.cost = new(big.Rat)
			continue
		}
		step := in.step(limit)
		if then := now.Add(step); then.After(earliest) && then.Before(latest) {
			now = then
		}
		n := 1 + int(uint64(limit.Capacity)*uint64(in.byte())/255)
		c, err := l.Charge("a", float64(n))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := c.Check(now)
		d, err := c.Take(now)
		if err != nil || d != before {
			t.Fatalf("limit %+v: Take returned %+v, %v; Check returned %+v", limit, d, err, before)
		}
		cost := big.NewRat(int64(n), 1)
		b := withoutUndone(limit, attempts)
		tokens, _ := b.holds(now)
		if d.Allowed && new(big.Rat).Add(tokens, b.supply.quantum()).Cmp(cost) < 0 {
			t.Fatalf("limit %+v: granted %d, and without the undone charges the bucket holds %v",
				limit, n, tokens.FloatString(9))
		}
		if !d.Allowed {
			continue
		}
		if in.below(4) == 0 {
			c.Undo()
			if after, _ := c.Check(now); after != before {
				t.Fatalf("limit %+v: after Undo, Check returned %+v, want %+v", limit, after, before)
			}
			cost = new(big.Rat)
		}
		attempts = append(attempts, attempt{c, now, cost})
	}
	if why := withoutUndone(limit, attempts).checkBound(); why != "" {
		t.Fatalf("C1: limit %+v: %s", limit, why)
	}
}

// undoAll runs the program in the bytes of in on both implementations.
func undoAll(t *testing.T, in input) {
	limit := in.limit()
	clock := tb.WithClock(func() time.Time { return time.Unix(0, 0) })
	c, err := cas.New[string](limit, clock)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mutex.New[string](limit, clock)
	if err != nil {
		t.Fatal(err)
	}
	undo(t, limit, in, casLimiter{c})
	undo(t, limit, in, mutexLimiter{m})
}

func FuzzUndo(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { undoAll(t, data) })
}

func TestUndoOnRandomPrograms(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{3})
	for range *programs / 10 {
		in := make(input, 200)
		_, _ = rng.Read(in)
		undoAll(t, in)
	}
}
