package fuzz

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// judge runs a program on a limiter, and charges the grants to an ideal bucket for each key. It
// checks the contract by its definition, and counts the decisions that differ from those of the
// ideal bucket.
type judge struct {
	t       *testing.T
	program program
	limiter limiter
	now     *time.Time

	supply     timeline
	buckets    map[string]*ideal
	charges    []*judged
	calls, off int
}

// judged is a charge that was granted, and what it was settled with.
type judged struct {
	charge
	key          string
	slot         *big.Rat // in supply, at which it may be used
	taken        *big.Rat // the supply at the grant
	settled      *big.Rat // the supply at the settlement, or nil
	cost, actual *big.Rat
	unpaid       *big.Rat
	owed         *big.Rat // the supply at which the bucket has paid what was too little, or nil
}

func (j *judge) run() {
	j.supply = newTimeline(j.program.limit)
	j.buckets = make(map[string]*ideal)
	for i, c := range j.program.calls {
		*j.now = j.now.Add(c.step)
		if why := j.call(c); why != "" {
			j.program.calls = j.program.calls[:i+1]
			j.t.Errorf("%T: %s", j.limiter, why)
			j.t.Fatal(j.program)
		}
	}
	for key, b := range j.buckets {
		why := b.checkBound()
		if j.settles() {
			why = j.checkSettled(key)
		}
		if why != "" {
			j.t.Errorf("%T: C1: key %s: %s", j.limiter, key, why)
			j.t.Fatal(j.program)
		}
	}
}

// call makes one call. It returns the reason if the contract is violated.
func (j *judge) call(c call) string {
	b := j.buckets[c.key]
	if b == nil {
		b = newIdeal(j.supply)
		j.buckets[c.key] = b
	}
	switch c.op {
	case setLimit:
		if err := j.limiter.SetLimit(c.limit); err != nil {
			return err.Error()
		}
		j.supply = j.supply.change(c.limit, *j.now)
		for _, b := range j.buckets {
			b.change(j.supply, *j.now)
		}
		return ""
	case settle:
		return j.settle(c)
	}
	cost := big.NewRat(int64(c.n), 10)
	charge, err := j.limiter.Charge(c.key, float64(c.n)/10)
	if (err != nil) != (c.n <= 0) {
		return fmt.Sprint("error ", err)
	}
	if err != nil {
		return ""
	}
	if c.op == reserve || c.op == wait || c.op == takeAll {
		charge.MayWait(tb.Never)
		return j.reserve(b, c, charge, cost)
	}
	return j.take(b, c, charge, cost)
}

// take takes a charge that does not wait.
func (j *judge) take(b *ideal, c call, charge charge, cost *big.Rat) string {
	tokens, _ := b.holds(*j.now)
	d, err := charge.Take(*j.now)
	if err != nil {
		return err.Error()
	}
	j.calls++
	if d.Allowed != (tokens.Cmp(cost) >= 0) {
		j.off++
	}
	if d.Allowed {
		b.take(*j.now, cost)
		j.hold(b, c, charge, cost)
		if most := new(big.Rat).Add(tokens, b.supply.quantum()); cost.Cmp(most) > 0 {
			return fmt.Sprintf("C1: granted %v, and the ideal bucket holds %v", cost, tokens)
		}
		return ""
	}
	if least := new(big.Rat).Sub(tokens, b.error()); cost.Cmp(least) <= 0 {
		return fmt.Sprintf("C2: refused %v, and the ideal bucket holds %v", cost, tokens)
	}
	if why := checkWait(b, charge, *j.now, d.RetryAfter, cost, new(big.Rat)); why != "" {
		return fmt.Sprintf("C3: wait %v for %v: %s", d.RetryAfter, cost, why)
	}
	return ""
}

// reserve takes a charge that may put the bucket into debt by one capacity.
func (j *judge) reserve(b *ideal, c call, charge charge, cost *big.Rat) string {
	lack := b.lacks(*j.now, cost)
	over := new(big.Rat).Sub(lack, b.supply.capacity())
	d, err := charge.Take(*j.now)
	if err != nil {
		return err.Error()
	}
	j.calls++
	switch {
	case !d.Allowed:
		slot := new(big.Rat).Add(b.supply.by(*j.now), lack)
		possible := cost.Cmp(b.supply.capacity()) <= 0 && slot.Cmp(b.supply.by(latest)) < 0
		if possible && over.Add(over, b.error()).Sign() <= 0 {
			return fmt.Sprintf("C2: refused %v, and the debt would be %v", cost, lack)
		}
		if why := checkWait(b, charge, *j.now, d.RetryAfter, cost, b.supply.capacity()); why != "" {
			return fmt.Sprintf("C3: wait %v for %v: %s", d.RetryAfter, cost, why)
		}
		return ""
	case charge.Delay() == 0:
		tokens, _ := b.holds(*j.now)
		b.take(*j.now, cost)
		j.hold(b, c, charge, cost)
		if most := new(big.Rat).Add(tokens, b.supply.quantum()); cost.Cmp(most) > 0 {
			return fmt.Sprintf("granted %v without a delay, and the ideal bucket holds %v", cost, tokens)
		}
		return ""
	case over.Cmp(b.supply.quantum()) > 0:
		return fmt.Sprintf("granted %v, and the debt is %v", cost, lack)
	}
	b.reserve(*j.now, cost)
	j.hold(b, c, charge, cost)
	then := j.now.Add(charge.Delay())
	if supplied := b.supply.by(then); supplied.Add(supplied, b.supply.quantum()).Cmp(b.at) < 0 {
		return fmt.Sprintf("the delay %v of %v is too short", charge.Delay(), cost)
	}
	if supplied := b.supply.by(then.Add(-1)); supplied.Cmp(new(big.Rat).Add(b.at, b.error())) >= 0 {
		return fmt.Sprintf("the delay %v of %v is too long", charge.Delay(), cost)
	}
	return ""
}

func (j *judge) hold(b *ideal, c call, charge charge, cost *big.Rat) {
	j.charges = append(j.charges, &judged{
		charge: charge, key: c.key, slot: b.at, taken: j.supply.by(*j.now),
		cost: cost, actual: cost, unpaid: new(big.Rat),
	})
}

// checkWait checks C3: the call is granted after wait and not earlier, and at that time the ideal
// bucket first lacks at most debt. It returns the reason if C3 is violated.
func checkWait(
	b *ideal, c tb.Charge, now time.Time, wait time.Duration, cost, debt *big.Rat,
) string {
	if cost.Cmp(b.supply.capacity()) > 0 {
		if wait != tb.Never {
			return "the cost is above the capacity"
		}
		return ""
	}
	lacksAt := func(t time.Time) *big.Rat { // beyond the debt
		lack := b.lacks(t, cost)
		return lack.Sub(lack, debt)
	}
	if wait == tb.Never { // longer than a Duration
		then := now.Add(tb.Never - 1)
		if lack := lacksAt(then); lack.Add(lack, b.error()).Sign() <= 0 && then.Before(latest) {
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
	if lacksAt(then).Cmp(b.supply.quantum()) >= 0 {
		return "the ideal bucket does not hold it then"
	}
	if lack := lacksAt(then.Add(-1)); lack.Add(lack, b.error()).Sign() <= 0 {
		return "the ideal bucket holds it earlier"
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
// evicted in debt. Readings are late only if the program has one key, and only allows and reserves:
// with several keys, a full bucket that was evicted comes back at a time that depends on the
// readings of other keys. A new limit can hold the debt of the old one.
func exactProgram(p program) program {
	p.maxKeys = 100
	p.calls = p.calls[:min(len(p.calls), 60)]
	keys := make(map[string]bool)
	inOrder := false
	for _, c := range p.calls {
		keys[c.key] = true
		inOrder = inOrder || c.op == settle || c.op == setLimit || len(keys) > 1
	}
	now, l := time.Unix(0, 0), p.limit
	large := l.Capacity > 8_388_607
	for i := range p.calls {
		c := &p.calls[i]
		if inOrder && c.step < 0 {
			c.step = -c.step
		}
		if then := now.Add(c.step); then.Before(earliest) || then.After(latest) {
			c.step = 0
		}
		now = now.Add(c.step)
		if c.op == settle && slow(l) {
			c.op = allowAt
		}
		if c.op == setLimit {
			if l.Capacity > max(2000, 2*c.limit.Capacity) {
				c.limit.Capacity = l.Capacity
			}
			if slow(c.limit) {
				c.limit.Tokens, c.limit.Per = 10, time.Second
			}
			l = c.limit
			large = large || l.Capacity > 8_388_607
		}
		if large || c.op == allowN {
			c.n *= 10
		}
	}
	return p
}

// slow reports whether the clock can end before a debt of one capacity is paid.
func slow(l tb.Limit) bool {
	return 2*float64(l.Capacity)*float64(l.Per)/float64(l.Tokens) > float64(100*365*24*time.Hour)
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
		j := judge{t: t, program: p, limiter: l, now: &now}
		j.run()
		calls, off = calls+j.calls, off+j.off
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
