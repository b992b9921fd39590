package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// maxDebt is the most tokens that calls of Wait may put a bucket into debt: two of the largest
// capacities.
const maxDebt = 2 * tb.MaxCapacity

// deepestDebt is the deepest debt in tokens that a change of the limit keeps. It is more than
// maxDebt, because at a late reading a debt is deeper.
const deepestDebt = 1 << 32

// mostDebt is the most units of debt that a level reports. At a late reading the debt is higher by
// the supply since.
const mostDebt = 1 << 61

// request is what a call asks of a bucket.
type request struct {
	tokens float64
	layout *layout // of units
	units  uint64  // the tokens in one layout

	debt   func(m *layout) uint64 // the most debt in units; nil for a call that does not wait
	within time.Duration          // the longest delay of a call that waits

	// rest is for Settle: the call asks only for the tokens beyond charged, gets as many of them as
	// debt allows, and is always granted.
	rest    bool
	charged float64 // tokens
}

// in returns the tokens in units of m, or more than the capacity if they are above it.
func (r *request) in(m *layout) uint64 {
	if r.layout != m {
		r.layout = m
		r.units = m.unitsOfCost(r.tokens)
	}
	return r.units
}

// cost returns what the call asks for in units of m.
func (r *request) cost(m *layout) uint64 {
	if r.rest {
		more, _ := m.beyond(r.tokens, r.charged)
		return more
	}
	return r.in(m)
}

// result is what a call gets.
type result struct {
	tb.Decision
	delay   time.Duration // until the tokens may be used
	charged uint64        // units, if granted
	layout  *layout       // of these units
	receipt receipt
}

// receipt is the cell that a grant charged, and its words before and after the grant. Cancel needs
// them. before is a word of that cell too, if the grant put the bucket into debt.
type receipt struct {
	cell          *cell
	before, after uint64
}

// home is where a bucket is: a key's place in the table of a Limiter, or a Bucket.
type home interface {
	// load returns the bucket's cell, or nil.
	load() *cell
	// layout returns the bucket's layout. The layout of a cell that was loaded before is the same or
	// an earlier one.
	layout() *layout
	// replace installs a cell with the given base and word in place of old. It returns nil if
	// another goroutine has replaced or removed old.
	replace(old *cell, m *layout, base, word uint64) *cell
	// insert decides a call on a full bucket, and installs its first cell. done is false if
	// another goroutine has installed one.
	insert(m *layout, t uint64, want request) (o result, done bool, err error)
	shared() *limits
	now() uint64
}

// spend decides a call at t on a bucket in any state. c is the bucket's cell, or nil. Each turn of
// the loop decides, or seals the word, or finds that another goroutine has changed the bucket.
func spend[H home](h H, c *cell, t uint64, want request) (result, error) {
	for ; ; c = h.load() {
		m := h.layout()
		if m == nil {
			panic(noLimit)
		}
		word := evicted
		if c != nil {
			word = c.word.Load()
		}
		if word == evicted { // the insert waits for the goroutine that evicts the cell
			if want.rest && h.shared().owe(m, m.capacity) {
				continue
			}
			if o, done, err := h.insert(m, t, want); done {
				return o, err
			}
			continue
		}
		if isSealed(word) && h.load() != c { // m may be later than the successor of c
			continue
		}
		s := m.charge(h.shared().view(m, c, word, t), t, &want)
		switch {
		case !s.granted && c.tier() == tierOf(m.owner):
			return s.refusal(m, &want), nil
		case !s.granted: // the key has changed its tier: RetryAfter is exact only from now on
			if _, moved := swap(h, m, c, word, t, s.before, s.before); moved {
				return s.refusal(m, &want), nil
			}
		case s.after.deficit > m.capacity && h.shared().owe(m, s.after.slot(m).after(s.now)):
			// m may be forgotten: the next turn loads the layout again
		default:
			if r, taken := swap(h, m, c, word, t, s.before, s.after); taken {
				return s.grant(m, r), nil
			}
		}
	}
}

// swap takes one step to give the bucket of c the balance next in place of before, which c has by its
// word. It swaps the word, if c can hold next. If not, it seals the word, or it replaces the sealed
// cell. done is false after a seal, and if another goroutine has changed the bucket first: then the
// caller starts over. The replacement is the grant: DESIGN.md §8 has the reason.
func swap[H home](
	h H, m *layout, c *cell, word, t uint64, before, next balance,
) (r receipt, done bool) {
	switch {
	case isSealed(word):
		var base uint64
		base, r = m.successor(before, next, t)
		r.cell = h.replace(c, m, base, r.after)
		return r, r.cell != nil
	case m.owns(c) && m.holds(c.base, next):
		r = receipt{c, word, m.wordOf(c.base, next)}
		return r, c.word.CompareAndSwap(word, r.after)
	}
	c.word.CompareAndSwap(word, word|sealBit)
	return receipt{}, false
}

// successor returns the base of a cell for next, and its words for before and next. Only Cancel of a
// reservation needs the word for before. It is the constant evicted, which stands for no word, if
// next is not in debt, or if no cell can hold both.
func (m *layout) successor(before, next balance, t uint64) (base uint64, r receipt) {
	base = m.baseOf(next, t)
	if next.deficit > m.capacity {
		if low := min(base, blockOf(before.time)); m.holds(low, next) {
			return low, receipt{before: m.wordOf(low, before), after: m.wordOf(low, next)}
		}
	}
	return base, receipt{before: evicted, after: m.wordOf(base, next)}
}

// sum is what a call would leave of a bucket, and whether it is granted.
type sum struct {
	before, after balance
	t             uint64 // the reading of the call
	now           wide   // the supply at t
	charged       uint64
	granted       bool
}

// charge returns what a call at t leaves of a bucket with balance b. If the bucket cannot pay at
// once, a call that may wait moves the bucket's own time to its slot. There the bucket can pay, and
// is then empty. The balance holds the unit before the slot and a deficit of the capacity and one
// unit, which marks a bucket in debt.
func (m *layout) charge(b balance, t uint64, want *request) sum {
	now := m.supply.at(t)
	s := sum{before: b, after: b.refilled(now), t: t, now: now, charged: want.cost(m)}
	if want.rest {
		most := m.capacity + want.debt(m)
		s.charged = min(s.charged, most-min(most, s.after.missing(now)))
	}
	s.after.deficit += s.charged
	switch {
	case s.after.deficit <= m.capacity:
		s.granted = true
	case want.debt != nil && (s.charged <= m.capacity || want.rest):
		slot := s.after.slot(m)
		wait := m.waitFor(slot, t)
		if slot.after(now) <= want.debt(m) && wait <= want.within && wait < tb.Never {
			s.after, s.granted = balance{slot.minus(1), m.capacity + 1}, true
		}
	}
	if want.rest && !s.granted { // the clock ends before the slot
		s.after.deficit -= s.charged
		s.charged, s.granted = 0, true
	}
	return s
}

// first returns what a call at t leaves of a bucket that is full at start, and the base and the word
// of its first cell.
func (m *layout) first(start, t uint64, want *request) (s sum, base, word uint64) {
	full := m.supply.at(start)
	s = m.charge(balance{time: full}, t, want)
	base = blockOf(full)
	return s, base, m.wordOf(base, s.after)
}

// check returns the decision of a call at t on a bucket with balance b.
func (m *layout) check(b balance, t uint64, want *request) tb.Decision {
	s := m.charge(b, t, want)
	if !s.granted {
		return s.refusal(m, want).Decision
	}
	return m.grant(min(s.after.deficit, m.capacity))
}

// grant returns the result of a granted call.
func (s *sum) grant(m *layout, r receipt) result {
	o := result{charged: s.charged, layout: m, receipt: r}
	o.Decision = m.grant(min(s.after.deficit, m.capacity)) // more is a debt
	if s.after.deficit > m.capacity {
		o.delay = m.waitFor(s.after.slot(m), s.t)
	}
	return o
}

// refusal returns the result of a refused call.
func (s *sum) refusal(m *layout, want *request) result {
	d := m.refusal(s.after, s.t, s.charged)
	o := result{Decision: d, delay: d.RetryAfter}
	if want.debt == nil || d.RetryAfter == tb.Never {
		return o
	}
	// The same call is granted once the debt is small enough and the delay short enough.
	o.RetryAfter = 0
	if slot, debt := s.after.slot(m), want.debt(m); slot.after(s.now) > debt {
		o.RetryAfter = tb.Never
		if then, ok := m.supply.timeOf(slot.minus(debt)); ok {
			o.RetryAfter = m.wait(s.t, then)
		}
	}
	if o.delay > want.within {
		o.RetryAfter = max(o.RetryAfter, o.delay-want.within)
	}
	return o
}

// oneCapacity and deepest are the debts that reservations and calls of Wait may leave.
func oneCapacity(m *layout) uint64 { return m.capacity }
func deepest(m *layout) uint64     { return maxDebt * m.scale }
