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

// ideal is the continuous bucket by its definition: what it holds grows at the rate up
// to the capacity. It is charged what an implementation granted, and so says after any
// number of calls how far that implementation is off. It knows of no units and no words.
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

// quantum is what the contract allows an implementation to be off by.
func (b *ideal) quantum() *big.Rat {
	q := big.NewRat(1, 1_000_000)
	if c := big.NewRat(int64(b.limit.Capacity), 1<<23); c.Cmp(q) > 0 {
		return c
	}
	return q
}

// holds returns the tokens at t, and which time that is: the bucket's own if t is late.
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

// nanoseconds returns those from a to b, however far they are apart.
func nanoseconds(a, b time.Time) *big.Rat {
	s := new(big.Int).Sub(big.NewInt(b.Unix()), big.NewInt(a.Unix()))
	s.Mul(s, big.NewInt(1e9))
	s.Add(s, big.NewInt(int64(b.Nanosecond()-a.Nanosecond())))
	return new(big.Rat).SetInt(s)
}

// judge runs p on l, and its grants on an ideal bucket for each key, and checks the
// contract from its definition. It counts the decisions that are not those of the ideal.
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
				fail("C1: granted %v, and the bucket holds %v", cost, tokens)
			}
			continue
		}
		if least := new(big.Rat).Sub(tokens, b.quantum()); cost.Cmp(least) <= 0 {
			fail("C2: refused %v, and the bucket holds %v", cost, tokens)
		}
		if why := wrongWait(b, charge, *now, d.RetryAfter, cost); why != "" {
			fail("C3: wait %v for %v: %s", d.RetryAfter, cost, why)
		}
	}
	for key, b := range buckets {
		if why := b.beyondBound(); why != "" {
			t.Errorf("C1: key %s: %s", key, why)
			t.Fatal(p)
		}
	}
	return calls, off
}

// wrongWait checks C3: after wait the call is granted and not before, and that is when
// the ideal bucket holds the cost.
func wrongWait(b *ideal, c tb.Charge, now time.Time, wait time.Duration, cost *big.Rat) string {
	if cost.Cmp(b.capacity()) > 0 {
		if wait != tb.Never {
			return "the cost is above the capacity"
		}
		return ""
	}
	if wait == tb.Never { // beyond what a Duration can say
		then := now.Add(tb.Never - 1)
		if tokens, _ := b.holds(then); nearly(tokens, b.quantum()).Cmp(cost) >= 0 &&
			then.Before(latest) {
			return "it fits before"
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
	if tokens, _ = b.holds(then.Add(-1)); nearly(tokens, b.quantum()).Cmp(cost) >= 0 {
		return "the ideal bucket holds it earlier"
	}
	return ""
}

// nearly returns what is certainly there if tokens are, give or take a quantum.
func nearly(tokens, quantum *big.Rat) *big.Rat { return new(big.Rat).Sub(tokens, quantum) }

// beyondBound checks C1 on every interval between two grants.
func (b *ideal) beyondBound() string {
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

// earliest and latest are readings between which the clock of a limiter that is first
// read at the zero time of Unix works without reaching an end.
var (
	earliest = time.Unix(0, 0).Add(-100 * 365 * 24 * time.Hour)
	latest   = time.Unix(0, 0).Add(100 * 365 * 24 * time.Hour)
)

// exactProgram makes of p one that an ideal bucket can be compared on: costs in tenths
// where a tenth is a whole number of units, readings within the clock's range, and
// no eviction. Readings are late only if there is one key: with more, a full bucket
// that was dropped comes back as late as another key's reading says.
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

// implementations are given p's limiters, whose clocks start at the zero time of Unix.
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
	t.Logf("%d of %d decisions are not those of the ideal bucket", off, calls)
	if calls < *programs || off > calls/1000 {
		t.Errorf("want at most one in a thousand, and at least %d calls", *programs)
	}
}
