package peers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// property is a column of the table in docs/peers.md, which defines it.
type property struct {
	name  string
	check func(b *bubble, s subject) (failure string)
}

var properties = []property{
	{"C1 bound", checkBound},
	{"C1 late", checkLateBound},
	{"C1 eviction", checkEviction},
	{"C2 no lost credit", checkNoLostCredit},
	{"C3 exact wait", checkExactWait},
	{"C3 never", checkNever},
	{"C5 time", checkTimeStays},
	{"C7 bounded", checkBounded},
	{"C8 costs", checkCosts},
}

// fives is the limit of most checks. A limiter that counts in windows has windows of two
// seconds for it.
var fives = tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}

// hourly is the same capacity with windows of ten hours.
var hourly = tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}

// checkBound alternates pauses with calls that are frequent or occasional.
func checkBound(b *bubble, s subject) string {
	rng := rand.New(rand.NewPCG(1, 1))
	token := int64(interval(fives))
	d, bucket := s.new(b, fives, 1000), newIdeal(fives)
	for range 200 {
		b.advance(time.Duration(rng.Int64N(15 * token)))
		calls, pause := 20, token
		if rng.IntN(2) == 0 {
			calls, pause = 200, token/50
		}
		for range calls {
			b.advance(time.Duration(rng.Int64N(pause)))
			if !d.take("a", 1).hasTokens() {
				continue
			}
			if over := bucket.take(b.reading(), 1); over > quantum {
				return fmt.Sprintf("at %v: %.3g tokens more than the bound", b.reading(), over)
			}
		}
	}
	return ""
}

// checkLateBound makes calls whose readings go back and forth.
func checkLateBound(b *bubble, s subject) string {
	rng := rand.New(rand.NewPCG(2, 2))
	d, bucket := s.new(b, fives, 1000), newIdeal(fives)
	d.take("a", 10)
	bucket.take(0, 10)
	for range 5000 {
		late := time.Duration(rng.Int64N(int64(2 * time.Second)))
		ahead := time.Duration(rng.Int64N(int64(time.Second)))
		b.set(max(0, bucket.latest+ahead-late))
		before, n := b.reading(), min(1+rng.IntN(3), s.maxCost())
		if d.take("a", n).hasTokens() {
			over := bucket.take(max(before, b.reading()), n)
			if over > s.overBound+quantum {
				return fmt.Sprintf("at %v: %.3g tokens more than the bound", b.reading(), over)
			}
		}
		bucket.refill(before)
	}
	return ""
}

// checkEviction drains a key and fills the table with other keys.
func checkEviction(b *bubble, s subject) string {
	const maxKeys = 1000
	d := s.new(b, fives, maxKeys)
	d.take("victim", 10)
	for i := range 3 * maxKeys {
		d.take("other "+strconv.Itoa(i), 1)
	}
	if d.take("victim", 1).hasTokens() {
		return "a drained key is granted a token after 3000 new keys"
	}
	return ""
}

// checkNoLostCredit compares refusals with the ideal bucket.
func checkNoLostCredit(b *bubble, s subject) string {
	rng := rand.New(rand.NewPCG(3, 3))
	d, bucket := s.new(b, fives, 1000), newIdeal(fives)
	for range 5000 {
		b.advance(time.Duration(rng.IntN(10)) * interval(fives) / 4)
		n := min(1+rng.IntN(4), s.maxCost())
		bucket.refill(b.reading())
		switch d.take("a", n) {
		case granted:
			bucket.take(b.reading(), n)
		case refused:
			if bucket.tokens > float64(n)+quantum {
				return fmt.Sprintf("at %v: %d refused of %.3g", b.reading(), n, bucket.tokens)
			}
		}
		bucket.tokens = max(bucket.tokens, 0) // checkBound judges the excess
	}
	return ""
}

// checkExactWait calls again after the wait of each refusal, and 1 ns before its end.
func checkExactWait(b *bubble, s subject) string {
	for _, limit := range []tb.Limit{
		fives,
		{Capacity: 10, Tokens: 3, Per: time.Second},
		{Capacity: 1000, Tokens: 7, Per: 24 * time.Hour},
	} {
		d := s.new(b, limit, 1000)
		drain := func() {
			for d.take("a", 1).hasTokens() {
			}
		}
		d.take("a", 1)
		b.advance(interval(limit) / 7)
		drain()
		for range 5 {
			wait := d.waitAfterRefusal("a", 1)
			b.advance(max(0, wait-1))
			if wait > 1 && d.take("a", 1).hasTokens() {
				return fmt.Sprintf("limit %v: granted 1ns before the end of %v", limit, wait)
			}
			b.advance(min(1, wait))
			if !d.take("a", 1).hasTokens() {
				return fmt.Sprintf("limit %v: refused after %v", limit, wait)
			}
			drain()
		}
	}
	return ""
}

// checkNever makes a call that costs more than the capacity.
func checkNever(b *bubble, s subject) string {
	if wait := s.new(b, fives, 1000).waitAfterRefusal("a", 11); wait != tb.Never {
		return fmt.Sprintf("a cost of 11 of 10 has a wait of %v", wait)
	}
	return ""
}

// checkTimeStays makes a late call between two calls that are not late.
func checkTimeStays(b *bubble, s subject) string {
	d := s.new(b, fives, 1000)
	d.take("a", 1)
	for _, c := range []struct {
		reading time.Duration
		n       int
		want    outcome
	}{
		{10 * time.Second, 8, granted}, {9 * time.Second, 1, granted},
		{10 * time.Second, 2, refused}, {10 * time.Second, 1, granted},
	} {
		b.set(c.reading)
		cost := min(c.n, s.maxCost())
		for range c.n / cost {
			if got := d.take("a", cost); got != c.want {
				return fmt.Sprintf("at %v: a cost of %d %s", c.reading, cost, got)
			}
		}
	}
	return ""
}

// checkBounded drains more keys than the table may hold and counts the drained keys that
// the table still has.
func checkBounded(b *bubble, s subject) string {
	const maxKeys, keys = 1000, 3000
	d := s.new(b, tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}, maxKeys)
	for i := range keys {
		d.take(strconv.Itoa(i), 1)
	}
	kept := 0
	for i := keys - 1; i >= 0; i-- {
		if !d.take(strconv.Itoa(i), 1).hasTokens() {
			kept++
		}
	}
	if kept > maxKeys {
		return fmt.Sprintf("%d keys in the table", kept)
	}
	return ""
}

// checkCosts makes calls that ask for nothing, or for more than any bucket holds.
func checkCosts(b *bubble, s subject) string {
	for _, n := range []int{
		0, -1, -10, math.MinInt, 11, 1 << 30, math.MaxInt32, math.MaxInt - 1, math.MaxInt,
		2_562_048, // hours are just over 2⁶³ nanoseconds
		2_562_058,
	} {
		d := s.new(b, hourly, 1000)
		d.take("a", 4)
		if o := d.take("a", n); n > 10 && o.hasTokens() {
			return fmt.Sprintf("a cost of %d is granted", n)
		}
		if !d.take("a", 6).hasTokens() || d.take("a", 1).hasTokens() {
			return fmt.Sprintf("a cost of %d changes the bucket", n)
		}
	}
	return ""
}
