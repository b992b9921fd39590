package peers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// property is a column of the table: a clause of the contract, or a part of one.
type property struct {
	name string
	asks string
	// check returns how the subject fails, or nothing.
	check func(w *world, s subject) string
}

var properties = []property{
	{"C1 bound", "Calls one after the other, often or now and then, are never granted more " +
		"than the capacity and what the rate supplies in any interval.", boundAlone},
	{"C1 concurrent", "The same for 100 callers at the same instants.", boundConcurrent},
	{"C1 late", "The same for readings of the clock that arrive late, in another order.",
		boundLate},
	{"C1 eviction", "A drained key is refused still when three tables full of other keys " +
		"have made a call each.", boundEviction},
	{"C2 no lost credit", "A call is refused only if a continuous bucket holds less.",
		noLostCredit},
	{"C1, C2 no drift", "Three tokens a second for an hour, each granted on the nanosecond, " +
		"and none a microsecond early.", noDrift},
	{"C3 exact wait", "After a refusal the call is granted when it was told, and refused " +
		"1 ns earlier. For sethvargo/go-limiter a minute earlier, because the test cannot " +
		"set its clock exactly.", exactWait},
	{"C3 never", "A cost above the capacity is told that no wait helps.", never},
	{"C5 time", "A late call is decided on the bucket as it stands, and leaves the " +
		"bucket's time alone.", timeStays},
	{"C7 bounded", "The table can be given a bound, and keeps it.", bounded},
	{"C8 costs", "A cost that is zero or negative changes nothing. A cost above the " +
		"capacity, up to the largest int, is not granted and changes nothing.", hostileCosts},
}

// fives is the limit of most checks. Windows of it are two seconds long.
var fives = tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}

// slow is the same with windows of ten hours.
var slow = tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}

// boundAlone idles for a while and then makes calls, often or now and then.
func boundAlone(w *world, s subject) string {
	limit := s.limit()
	rng := rand.New(rand.NewPCG(1, 1))
	token := int64(interval(limit))
	d, b := s.new(w, limit, 1000), newIdeal(limit)
	for range 200 {
		w.advance(time.Duration(rng.Int64N(15 * token)))
		calls, pause := 20, token
		if rng.IntN(2) == 0 {
			calls, pause = 200, token/50
		}
		for range calls {
			w.advance(time.Duration(rng.Int64N(pause)))
			if !d.take("a", 1).got() {
				continue
			}
			if over := b.take(w.reading(), 1); over > quantum {
				return fmt.Sprintf("at %v, %.3g tokens more than the bound", w.reading(), over)
			}
		}
	}
	return ""
}

// boundConcurrent has many callers at each instant.
func boundConcurrent(w *world, s subject) string {
	const callers, rounds = 100, 20
	limit := tb.Limit{Capacity: 50, Tokens: 10, Per: time.Second}
	if s.byHours {
		limit.Per = time.Hour
	}
	for range rounds {
		began := w.reading()
		d, b := s.new(w, limit, 1000), newIdeal(limit)
		var when [callers]time.Duration
		var wg sync.WaitGroup
		for i := range when {
			wg.Go(func() {
				when[i] = -1
				if d.take("a", 1).got() {
					when[i] = w.reading() - began
				}
			})
		}
		wg.Wait()
		w.close()
		slices.Sort(when[:])
		for _, at := range when {
			if at >= 0 && b.take(at, 1) > quantum {
				return fmt.Sprintf("more than the bound by %v", at)
			}
		}
	}
	return ""
}

// boundLate makes calls whose readings go back and forth.
func boundLate(w *world, s subject) string {
	rng := rand.New(rand.NewPCG(2, 2))
	d, b := s.new(w, fives, 1000), newIdeal(fives)
	d.take("a", 10)
	b.take(0, 10)
	for range 5000 {
		late := time.Duration(rng.Int64N(int64(2 * time.Second)))
		w.set(max(0, b.at+time.Duration(rng.Int64N(int64(time.Second)))-late))
		at, n := w.reading(), min(1+rng.IntN(3), s.most())
		if d.take("a", n).got() {
			if over := b.take(max(at, w.reading()), n); over > s.over+quantum {
				return fmt.Sprintf("at %v, %.3g tokens more than the bound", w.reading(), over)
			}
		}
		b.refill(at)
	}
	return ""
}

// boundEviction drains a key and pushes it out of the table.
func boundEviction(w *world, s subject) string {
	const maxKeys = 1000
	d := s.new(w, fives, maxKeys)
	d.take("victim", 10)
	for i := range 3 * maxKeys {
		d.take("stranger "+strconv.Itoa(i), 1)
	}
	if d.take("victim", 1).got() {
		return "a drained key is granted more after 3000 new keys"
	}
	return ""
}

// noLostCredit compares refusals with the ideal bucket.
func noLostCredit(w *world, s subject) string {
	rng := rand.New(rand.NewPCG(3, 3))
	limit := s.limit()
	d, b := s.new(w, limit, 1000), newIdeal(limit)
	for range 5000 {
		w.advance(time.Duration(rng.IntN(10)) * interval(limit) / 4)
		n := min(1+rng.IntN(4), s.most())
		b.refill(w.reading())
		switch d.take("a", n) {
		case granted:
			b.take(w.reading(), n)
		case refused:
			if b.tokens > float64(n)+quantum {
				return fmt.Sprintf("at %v, %d refused of %.3g", w.reading(), n, b.tokens)
			}
		}
		b.tokens = max(b.tokens, 0) // what was granted too much is another column's
	}
	return ""
}

// noDrift takes three tokens a second for an hour, from a bucket that never fills. Some
// calls are a little early.
func noDrift(w *world, s subject) string {
	d := s.new(w, tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second}, 1000)
	const hour = 3 * 60 * 60
	d.take("a", 10)
	for i := 1; i <= hour; i++ {
		due := (time.Duration(i)*time.Second + 2) / 3
		if i%100 == 0 {
			w.set(due - time.Microsecond)
			if d.take("a", 1).got() {
				return fmt.Sprintf("token %d more than a microsecond early", i)
			}
		}
		w.set(due)
		if !d.take("a", 1).got() {
			return fmt.Sprintf("token %d is late", i)
		}
	}
	return ""
}

// exactWait waits for as long as it is told, and before, for a step less.
func exactWait(w *world, s subject) string {
	limits := []tb.Limit{
		fives,
		{Capacity: 10, Tokens: 3, Per: time.Second},
		{Capacity: 1000, Tokens: 7, Per: 24 * time.Hour},
	}
	if s.byHours {
		limits = []tb.Limit{slow}
	}
	step := max(1, s.step)
	for _, limit := range limits {
		d := s.new(w, limit, 1000)
		d.take("a", 1)
		w.advance(interval(limit)/7 + s.step)
		for d.take("a", 1).got() {
		}
		for range 5 {
			wait := d.ask("a", 1)
			if wait > step {
				w.advance(wait - step)
				if d.take("a", 1).got() {
					return fmt.Sprintf("limit %v: granted %v before the %v", limit, step, wait)
				}
				w.advance(step)
			} else {
				w.advance(wait)
			}
			if !d.take("a", 1).got() {
				return fmt.Sprintf("limit %v: refused after the %v", limit, wait)
			}
			for d.take("a", 1).got() {
			}
		}
	}
	return ""
}

// never asks for more than the capacity.
func never(w *world, s subject) string {
	if wait := s.new(w, fives, 1000).ask("a", 11); wait != tb.Never {
		return fmt.Sprintf("a cost of 11 of 10 is to wait for %v", wait)
	}
	return ""
}

// timeStays makes a late call, which is to be decided on the bucket as it stands.
func timeStays(w *world, s subject) string {
	d := s.new(w, fives, 1000)
	d.take("a", 1)
	for _, c := range []struct {
		at   time.Duration
		n    int
		want outcome
	}{
		{10 * time.Second, 8, granted}, {9 * time.Second, 1, granted},
		{10 * time.Second, 2, refused}, {10 * time.Second, 1, granted},
	} {
		w.set(c.at)
		for range c.n / min(c.n, s.most()) {
			if got := d.take("a", min(c.n, s.most())); got != c.want {
				return fmt.Sprintf("at %v, a cost of %d: %s", c.at, c.n, got)
			}
		}
	}
	return ""
}

// bounded drains more keys than the table may hold, and counts those that it knows.
func bounded(w *world, s subject) string {
	const maxKeys, keys = 1000, 3000
	d := s.new(w, tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}, maxKeys)
	for i := range keys {
		d.take(strconv.Itoa(i), 1)
	}
	known := 0
	for i := keys - 1; i >= 0; i-- {
		if !d.take(strconv.Itoa(i), 1).got() {
			known++
		}
	}
	if known > maxKeys {
		return fmt.Sprintf("%d keys in the table", known)
	}
	return ""
}

// hostileCosts makes calls that no bucket can grant, or that ask for nothing.
func hostileCosts(w *world, s subject) string {
	for _, n := range []int{
		0, -1, -10, math.MinInt, 11, 1 << 30, math.MaxInt32, math.MaxInt - 1, math.MaxInt,
		2_562_048, // hours are just over 2⁶³ nanoseconds
		2_562_058,
	} {
		d := s.new(w, slow, 1000)
		d.take("a", 4)
		if o := d.take("a", n); n > 10 && o.got() {
			return fmt.Sprintf("a cost of %d is granted", n)
		}
		if !d.take("a", 6).got() || d.take("a", 1).got() {
			return fmt.Sprintf("a cost of %d changes the bucket", n)
		}
	}
	return ""
}
