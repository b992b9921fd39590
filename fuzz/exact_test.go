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

// ideal is the continuous bucket of the contract: its tokens grow at the rate up to the capacity.
// It is charged the grants of an implementation, and so it shows how far the implementation is
// off after any number of calls. It does not depend on units or words.
type ideal struct {
	limit   tb.Limit
	tokens  *big.Rat
	at      time.Time // of the latest grant
	granted []grant
}

type grant struct {
	at   time.Time
	cost *big.Rat
}

// rate is in tokens per nanosecond.
func (b *ideal) rate() *big.Rat { return big.NewRat(b.limit.Tokens, int64(b.limit.Per)) }

func (b *ideal) capacity() *big.Rat { return big.NewRat(int64(b.limit.Capacity), 1) }

// quantum returns the error that the contract allows, in tokens.
func (b *ideal) quantum() *big.Rat {
	q := big.NewRat(1, 1_000_000)
	if c := big.NewRat(int64(b.limit.Capacity), 1<<23); c.Cmp(q) > 0 {
		return c
	}
	return q
}

// holds returns the tokens at t, and the time of the bucket then: its own time if t is late.
func (b *ideal) holds(t time.Time) (*big.Rat, time.Time) {
	if b.tokens == nil {
		return b.capacity(), t
	}
	if !t.After(b.at) {
		return b.tokens, b.at
	}
	gain := new(big.Rat).Mul(b.rate(), nanoseconds(b.at, t))
	if gain.Add(gain, b.tokens).Cmp(b.capacity()) > 0 {
		return b.capacity(), t
	}
	return gain, t
}

func (b *ideal) take(t time.Time, cost *big.Rat) {
	tokens, at := b.holds(t)
	b.tokens, b.at = new(big.Rat).Sub(tokens, cost), at
	b.granted = append(b.granted, grant{at, cost})
}

// nanoseconds returns the time from a to b, which may exceed a time.Duration.
func nanoseconds(a, b time.Time) *big.Rat {
	s := new(big.Int).Sub(big.NewInt(b.Unix()), big.NewInt(a.Unix()))
	s.Mul(s, big.NewInt(1e9))
	s.Add(s, big.NewInt(int64(b.Nanosecond()-a.Nanosecond())))
	return new(big.Rat).SetInt(s)
}

// judge runs p on l, and charges the grants to an ideal bucket for each key. It checks the
// contract by its definition, and counts the decisions that differ from the ideal bucket's.
func judge(t *testing.T, p program, l limiter, now *time.Time) (calls, off int) {
	buckets := make(map[string]*ideal)
	for i, c := range p.calls {
		*now = now.Add(c.step)
		b := buckets[c.key]
		if b == nil {
			b = &ideal{limit: p.limit}
			buckets[c.key] = b
		}
		fail := func(format string, args ...any) {
			t.Helper()
			p.calls = p.calls[:i+1]
			t.Errorf(format, args...)
			t.Fatal(p)
		}
		cost := big.NewRat(int64(c.n), 10)
		charge, err := l.Charge(c.key, float64(c.n)/10)
		if (err != nil) != (c.n <= 0) {
			fail("error %v", err)
		}
		if err != nil {
			continue
		}
		tokens, _ := b.holds(*now)
		d, err := charge.Take(*now)
		if err != nil {
			fail("error %v", err)
		}
		calls++
		if d.Allowed != (tokens.Cmp(cost) >= 0) {
			off++
		}
		if d.Allowed {
			b.take(*now, cost)
			if most := new(big.Rat).Add(tokens, b.quantum()); cost.Cmp(most) > 0 {
				fail("C1: granted %v, and the ideal bucket holds %v", cost, tokens)
			}
			continue
		}
		if least := new(big.Rat).Sub(tokens, b.quantum()); cost.Cmp(least) <= 0 {
			fail("C2: refused %v, and the ideal bucket holds %v", cost, tokens)
		}
		if why := checkWait(b, charge, *now, d.RetryAfter, cost); why != "" {
			fail("C3: wait %v for %v: %s", d.RetryAfter, cost, why)
		}
	}
	for key, b := range buckets {
		if why := b.checkBound(); why != "" {
			t.Errorf("C1: key %s: %s", key, why)
			t.Fatal(p)
		}
	}
	return calls, off
}

// checkWait checks C3: the call is granted after wait and not earlier, and at that time the ideal
// bucket first holds the cost. It returns the reason if C3 is violated.
func checkWait(b *ideal, c tb.Charge, now time.Time, wait time.Duration, cost *big.Rat) string {
	if cost.Cmp(b.capacity()) > 0 {
		if wait != tb.Never {
			return "the cost is above the capacity"
		}
		return ""
	}
	if wait == tb.Never { // longer than a Duration
		then := now.Add(tb.Never - 1)
		if tokens, _ := b.holds(then); atLeast(tokens, b.quantum()).Cmp(cost) >= 0 &&
			then.Before(latest) {
			return "the ideal bucket holds it before the last Duration"
		}
		return ""
	}
	then := now.Add(wait)
	if d, err := c.Check(then); err != nil || !d.Allowed {
		return "refused then"
	}
	if d, err := c.Check(then.Add(-1)); err != nil || d.Allowed {
		return "granted a nanosecond earlier"
	}
	tokens, _ := b.holds(then)
	if new(big.Rat).Add(tokens, b.quantum()).Cmp(cost) <= 0 {
		return "the ideal bucket does not hold it then"
	}
	if tokens, _ = b.holds(then.Add(-1)); atLeast(tokens, b.quantum()).Cmp(cost) >= 0 {
		return "the ideal bucket holds it earlier"
	}
	return ""
}

// atLeast returns the tokens less a quantum: the least that an implementation may have.
func atLeast(tokens, quantum *big.Rat) *big.Rat { return new(big.Rat).Sub(tokens, quantum) }

// checkBound checks C1 on every interval between two grants. It returns the reason if C1 is
// violated.
func (b *ideal) checkBound() string {
	for i, first := range b.granted {
		sum := new(big.Rat)
		for _, last := range b.granted[i:] {
			sum.Add(sum, last.cost)
			bound := new(big.Rat).Mul(b.rate(), nanoseconds(first.at, last.at))
			bound.Add(bound, b.capacity()).Add(bound, b.quantum())
			if sum.Cmp(bound) > 0 {
				return "granted " + sum.FloatString(9) + " from " + first.at.String() + " to " +
					last.at.String() + ", where " + bound.FloatString(9) + " are allowed"
			}
		}
	}
	return ""
}

// earliest and latest bound the readings: the clock of a limiter whose first reading is
// time.Unix(0, 0) represents all readings between them.
var (
	earliest = time.Unix(0, 0).Add(-100 * 365 * 24 * time.Hour)
	latest   = time.Unix(0, 0).Add(100 * 365 * 24 * time.Hour)
)

// exactProgram changes p so that an ideal bucket can run it. Costs are tenths of a token if a
// tenth is a whole number of units. Readings are within the range of the clock. No key is
// evicted in debt. Readings are late only if the program has one key: with several keys, a full
// bucket that was evicted comes back at a time that depends on the readings of other keys.
func exactProgram(p program) program {
	p.maxKeys = 100
	keys := make(map[string]bool)
	for _, c := range p.calls {
		keys[c.key] = true
	}
	now := time.Unix(0, 0)
	for i := range p.calls {
		c := &p.calls[i]
		if len(keys) > 1 && c.step < 0 {
			c.step = -c.step
		}
		if then := now.Add(c.step); then.Before(earliest) || then.After(latest) {
			c.step = 0
		}
		now = now.Add(c.step)
		if p.limit.Capacity > 8_388_607 || c.op == allowN {
			c.n *= 10
		}
	}
	p.calls = p.calls[:min(len(p.calls), 60)]
	return p
}

// judgeAll runs p on both implementations. Their clocks start at time.Unix(0, 0).
func judgeAll(t *testing.T, p program) (calls, off int) {
	now := time.Unix(0, 0)
	opts := []tb.Option{tb.WithClock(func() time.Time { return now }), tb.WithMaxKeys(p.maxKeys)}
	c, err := cas.New[string](p.limit, opts...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mutex.New[string](p.limit, opts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []limiter{casLimiter{c}, mutexLimiter{m}} {
		now = time.Unix(0, 0)
		_, _ = l.Peek(t.Context(), "a") // starts the clock
		n, o := judge(t, p, l, &now)
		calls, off = calls+n, off+o
	}
	return calls, off
}

func FuzzExact(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		in := input(data)
		judgeAll(t, exactProgram(in.program(maxKeys)))
	})
}

func TestRandomProgramsAreAlmostIdeal(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{2})
	var calls, off int
	for range *programs / 20 {
		in := make(input, 300)
		_, _ = rng.Read(in)
		c, o := judgeAll(t, exactProgram(in.program(maxKeys)))
		calls, off = calls+c, off+o
	}
	t.Logf("%d of %d decisions differ from the ideal bucket's", off, calls)
	if calls < *programs || off > calls/1000 {
		t.Errorf("want at most one in a thousand to differ, and at least %d calls", *programs)
	}
}
