package fuzz

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

// judge runs a program on a limiter, and charges the grants to an ideal bucket for each key. It
// checks the contract by its definition, and counts the decisions that the ideal bucket would not
// have made.
type judge struct {
	t       *testing.T
	program program
	limiter limiter
	now     *time.Time

	limit      tb.Limit
	buckets    map[string]*ideal.Bucket
	charges    []*judged
	calls, off int
}

// judged is a charge that was granted, and what it was settled with.
type judged struct {
	charge
	key     string
	slot    *big.Rat // the supply at which the tokens may be used
	cost    *big.Rat
	taken   *big.Rat // the supply at the grant
	settled *big.Rat // the supply at the settlement, or nil
	actual  *big.Rat
	unpaid  *big.Rat
	owed    *big.Rat // the supply at which the bucket has paid what was too little, or nil
}

// run makes the calls. It returns the reason if the contract is violated.
func (j *judge) run() string {
	j.limit = j.program.limit
	j.buckets = make(map[string]*ideal.Bucket)
	for _, c := range j.program.calls {
		*j.now = j.now.Add(c.step)
		if why := j.call(c); why != "" {
			return why
		}
	}
	for key, b := range j.buckets {
		var charges []*judged
		for _, h := range j.charges {
			if h.key == key {
				charges = append(charges, h)
			}
		}
		if why := checkBound(b, charges, new(big.Rat)); why != "" {
			return "C1: key " + key + ": " + why
		}
	}
	return ""
}

// call makes one call. It returns the reason if the contract is violated.
func (j *judge) call(c call) string {
	b := j.buckets[c.key]
	if b == nil {
		b = ideal.New(j.limit)
		j.buckets[c.key] = b
	}
	switch c.op {
	case setLimit:
		for _, b := range j.buckets {
			if b.Lacks(*j.now, new(big.Rat)).Cmp(deepest) > 0 {
				return "" // the change would forgive a debt
			}
		}
		if err := j.limiter.SetLimit(c.limit); err != nil {
			return err.Error()
		}
		j.limit = c.limit
		for _, b := range j.buckets {
			b.Change(c.limit, *j.now)
		}
		return ""
	case settle:
		return j.settle(c)
	case hold:
		until := j.now.Add(c.within)
		if !canHold(b, until) {
			return ""
		}
		if err := j.limiter.Hold(j.t.Context(), c.key, until); err != nil {
			return err.Error()
		}
		b.Hold(*j.now, until)
		return ""
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
	kept := new(big.Rat)
	if c.op == keep {
		kept.SetFrac64(int64(c.keep), 10)
		charge.Keep(c.keep / 10)
	}
	until := j.now.Add(max(0, c.refusal))
	if c.op == keep && canHold(b, until) && !b.Ends(*j.now) {
		charge.HoldOnRefusal(until.Sub(*j.now))
	} else {
		until = time.Time{}
	}
	return j.take(b, c, charge, cost, kept, until)
}

// canHold reports whether there is such a time, and a hold until then forgives no debt.
func canHold(b *ideal.Bucket, until time.Time) bool {
	debt := b.Lacks(until, new(big.Rat))
	return !until.After(latest) && (b.Tokens(until).Sign() >= 0 || debt.Cmp(deepest) <= 0)
}

// take takes a charge that does not wait, and keeps tokens. Its refusal holds the bucket.
func (j *judge) take(
	b *ideal.Bucket, c call, charge charge, cost, kept *big.Rat, until time.Time,
) string {
	tokens := b.Tokens(*j.now)
	tokens.Sub(tokens, kept)
	d, err := charge.Take(*j.now)
	if err != nil {
		return err.Error()
	}
	j.calls++
	if d.Allowed != (tokens.Cmp(cost) >= 0) {
		j.off++
	}
	if d.Allowed {
		j.hold(b, c, charge, cost)
		if most := new(big.Rat).Add(tokens, b.Quantum()); cost.Cmp(most) > 0 {
			return fmt.Sprintf("C1: granted %v, and the ideal bucket holds %v", cost, tokens)
		}
		return ""
	}
	if least := new(big.Rat).Sub(tokens, b.Error()); cost.Cmp(least) <= 0 {
		return fmt.Sprintf("C2: refused %v, and the ideal bucket holds %v", cost, tokens)
	}
	both := new(big.Rat).Add(cost, kept)
	if both.Cmp(b.Capacity()) <= 0 && !b.Held(*j.now) {
		b.Hold(*j.now, until)
	}
	if why := checkWait(b, charge, *j.now, d.RetryAfter, both, new(big.Rat)); why != "" {
		return fmt.Sprintf("C3: wait %v for %v: %s", d.RetryAfter, cost, why)
	}
	return ""
}

// reserve takes a charge that may put the bucket into debt.
func (j *judge) reserve(b *ideal.Bucket, c call, charge charge, cost *big.Rat) string {
	tokens, lack := b.Tokens(*j.now), b.Lacks(*j.now, cost)
	slot := new(big.Rat).Add(b.Supplied(*j.now), lack)
	over := new(big.Rat).Sub(lack, deepest)
	d, err := charge.Take(*j.now)
	if err != nil {
		return err.Error()
	}
	j.calls++
	if !d.Allowed {
		possible := cost.Cmp(b.Capacity()) <= 0 && slot.Cmp(b.Supplied(latest)) < 0
		if possible && over.Add(over, b.Error()).Sign() <= 0 {
			return fmt.Sprintf("C2: refused %v, and the debt would be %v", cost, lack)
		}
		if why := checkWait(b, charge, *j.now, d.RetryAfter, cost, deepest); why != "" {
			return fmt.Sprintf("C3: wait %v for %v: %s", d.RetryAfter, cost, why)
		}
		return ""
	}
	j.hold(b, c, charge, cost)
	switch then := j.now.Add(charge.Delay()); {
	case charge.Delay() == 0:
		if most := new(big.Rat).Add(tokens, b.Quantum()); cost.Cmp(most) > 0 {
			return fmt.Sprintf("granted %v without a delay, and the ideal bucket holds %v", cost, tokens)
		}
	case over.Cmp(b.Quantum()) > 0:
		return fmt.Sprintf("granted %v, and the debt is %v", cost, lack)
	case slot.Cmp(new(big.Rat).Add(b.Supplied(then), b.Quantum())) > 0:
		return fmt.Sprintf("the delay %v of %v is too short", charge.Delay(), cost)
	case slot.Add(slot, b.Error()).Cmp(b.Supplied(then.Add(-1))) <= 0:
		return fmt.Sprintf("the delay %v of %v is too long", charge.Delay(), cost)
	}
	return ""
}

// hold charges the ideal bucket what was granted.
func (j *judge) hold(b *ideal.Bucket, c call, charge charge, cost *big.Rat) {
	b.Take(*j.now, cost)
	j.charges = append(j.charges, &judged{
		charge: charge, key: c.key, slot: b.Slot(), cost: cost, taken: b.Counts(*j.now),
		actual: cost, unpaid: new(big.Rat),
	})
}

// settle settles a charge with an actual cost. It returns the reason if the tokens that could not
// be charged are not the tokens of the ideal bucket.
func (j *judge) settle(c call) string {
	if len(j.charges) == 0 {
		return ""
	}
	h := j.charges[len(j.charges)-1-c.held%len(j.charges)]
	if h.settled != nil || j.buckets[h.key].Ends(*j.now) {
		return ""
	}
	n := int64(max(0, c.n)) * int64(1+c.held)
	before := j.limiter.Stats().Unpaid
	if err := h.Settle(float64(n) / 10); err != nil {
		return err.Error()
	}
	b, unpaid := j.buckets[h.key], new(big.Rat)
	h.actual, h.settled = big.NewRat(n, 10), b.Counts(*j.now)
	h.unpaid.SetFloat64(j.limiter.Stats().Unpaid - before)
	if more := new(big.Rat).Sub(h.actual, h.cost); more.Sign() > 0 {
		unpaid = b.Settle(*j.now, more)
		h.owed = b.Slot()
	} else {
		b.Give(*j.now, more.Neg(more))
	}
	if off := new(big.Rat).Sub(unpaid, h.unpaid); off.Abs(off).Cmp(b.Error()) > 0 {
		return fmt.Sprintf("%s of %v instead of %v are not charged, want %s",
			h.unpaid.FloatString(9), h.actual, h.cost, unpaid.FloatString(9))
	}
	return ""
}

// checkWait checks C3: the call is granted after wait and not earlier, and at that time the ideal
// bucket first lacks at most debt. It returns the reason if C3 is violated.
func checkWait(
	b *ideal.Bucket, c tb.Charge, now time.Time, wait time.Duration, cost, debt *big.Rat,
) string {
	if cost.Cmp(b.Capacity()) > 0 {
		if wait != tb.Never {
			return "the cost is above the capacity"
		}
		return ""
	}
	lacksAt := func(t time.Time) *big.Rat { // beyond the debt
		lack := b.Lacks(t, cost)
		return lack.Sub(lack, debt)
	}
	if wait == tb.Never { // longer than a Duration
		then := now.Add(tb.Never - 1)
		if lack := lacksAt(then); lack.Add(lack, b.Error()).Sign() <= 0 && then.Before(latest) {
			return "the ideal bucket holds it before the last Duration"
		}
		return ""
	}
	then := now.Add(wait)
	if d, err := c.Peek(then); err != nil || !d.Allowed {
		return "refused then"
	}
	if d, err := c.Peek(then.Add(-1)); err != nil || d.Allowed {
		return "granted a nanosecond earlier"
	}
	if lacksAt(then).Cmp(b.Quantum()) >= 0 {
		return "the ideal bucket does not hold it then"
	}
	if lack := lacksAt(then.Add(-1)); lack.Add(lack, b.Error()).Sign() <= 0 {
		return "the ideal bucket holds it earlier"
	}
	return ""
}

// judgeAll runs p on both implementations. Their clocks start at time.Unix(0, 0). If the contract
// is violated, it reports the shortest part of p that it finds to violate the contract.
func judgeAll(t *testing.T, p program) (calls, off int) {
	for _, kind := range []int{0, 1} {
		why, n, o := judgeOne(t, p, kind)
		calls, off = calls+n, off+o
		if why == "" {
			continue
		}
		rule := why[:min(len(why), 3)] // a part of p may break another one, and only because it is a part
		p = p.shortest(func(p program) bool {
			why, _, _ := judgeOne(t, p, kind)
			return strings.HasPrefix(why, rule)
		})
		why, _, _ = judgeOne(t, p, kind)
		t.Fatalf("%s: %s\n%v", []string{"cas", "mutex"}[kind], why, p)
	}
	return calls, off
}

func judgeOne(t *testing.T, p program, kind int) (why string, calls, off int) {
	now := time.Unix(0, 0)
	clock := tb.WithClock(func() time.Time { return now })
	limiter := newLimiter(t, kind, p.limit, clock, tb.WithMaxKeys(p.maxKeys))
	j := judge{t: t, program: p, limiter: limiter, now: &now}
	_, _ = j.limiter.Peek(t.Context(), "a") // starts the clock
	why = j.run()
	return why, j.calls, j.off
}

func FuzzExact(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		in := input(data)
		judgeAll(t, exactProgram(in.program(maxKeys)))
	})
}

func TestRandomProgramsAreAlmostIdeal(t *testing.T) {
	n, calls, off := *programs/20, 0, 0
	eachProgram(t, n, func(rng *rand.ChaCha8) {
		in := randomInput(rng, 300)
		c, o := judgeAll(t, exactProgram(in.program(maxKeys)))
		calls, off = calls+c, off+o
	})
	tally(t, n, calls, off)
	if calls < *programs || off > max(calls/1000, 10) {
		t.Errorf("want at most one in a thousand to differ, and at least %d calls", *programs)
	}
}

func TestProgramsByHandAreAlmostIdeal(t *testing.T) {
	for _, p := range programsByHand {
		t.Run(p.name, func(t *testing.T) { judgeAll(t, exactProgram(p.program)) })
	}
}
