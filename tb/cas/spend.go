package cas

import (
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// maxDebt is the most units that calls of Wait may put a bucket into debt: 2,147 tokens if a token
// is a million units, and at least two capacities.
const maxDebt = 1 << 31

// deepestDebt is the deepest debt in tokens that a change of the limit keeps. It is more than
// maxDebt, because the limit before may have larger units.
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
		base, seen := h.shared().view(m, c, word, t)
		s := m.charge(base, seen, t, &want)
		if !s.granted && c.tier() == tierOf(m.owner) {
			return s.refusal(m, &want), nil
		}
		switch {
		case s.deficit > m.capacity && s.granted && h.shared().owe(m, s.ahead(m, s.slot(m))):
			// m may be forgotten: the next turn loads the layout again
		case m.owns(c) && s.base == c.base && !isSealed(word) && m.fits(s.delta):
			next := m.pack(s.delta, s.deficit)
			if c.word.CompareAndSwap(word, next) {
				return s.grant(m, receipt{c, word, next}), nil
			}
		case !isSealed(word):
			c.word.CompareAndSwap(word, word|sealBit)
		case !s.granted: // the key has changed its tier: RetryAfter is exact only from now on
			if h.replace(c, m, base, seen) != nil {
				return s.refusal(m, &want), nil
			}
		default: // the replacement is the grant: DESIGN.md §8 has the reason
			base, r := s.base, receipt{before: s.before, after: m.pack(s.delta, s.deficit)}
			if m.owns(c) || !m.fits(s.delta) {
				base, r.before, r.after = s.successor(m)
			}
			if r.cell = h.replace(c, m, base, r.after); r.cell != nil {
				return s.grant(m, r), nil
			}
		}
	}
}

// sum is what a call would leave on a cell, and whether it is granted.
type sum struct {
	base, before   uint64   // of the cell: its base, and its word before the call
	t              uint64   // the reading of the call
	position       position // at t
	elapsed        uint64
	delta, deficit uint64
	charged        uint64
	granted        bool
}

// charge returns what a call at t leaves on a cell with the given base and word. If the bucket
// cannot pay at once, a call that may wait moves the bucket's own time to its slot. There the
// bucket can pay, and is then empty. The word holds the unit before the slot and a deficit of the
// capacity and one unit, which marks a bucket in debt.
func (m *layout) charge(base, word, t uint64, want *request) sum {
	p := m.positionAt(t)
	if p.blocks >= base && p.blocks-base >= m.maxBlocks { // since would be wrong, and it is full
		base, word = p.blocks, m.pack(p.rest, 0)
	}
	s := sum{base: base, before: word, t: t, position: p, charged: want.cost(m)}
	s.elapsed = m.since(base, p)
	s.delta, s.deficit, _ = m.step(word, s.elapsed, 0)
	if want.rest {
		most := m.capacity + want.debt(m)
		s.charged = min(s.charged, most-min(most, s.ahead(m, s.delta+s.deficit)))
	}
	s.deficit += s.charged
	switch {
	case s.deficit <= m.capacity:
		s.granted = true
	case want.debt != nil && (s.charged <= m.capacity || want.rest):
		slot := s.slot(m)
		wait := m.waitFor(base, slot, t)
		if s.ahead(m, slot) <= want.debt(m) && wait <= want.within && wait < tb.Never {
			s.delta, s.deficit, s.granted = slot-1, m.capacity+1, true
		}
	}
	if want.rest && !s.granted { // the clock ends before the slot
		s.deficit, s.charged, s.granted = s.deficit-s.charged, 0, true
	}
	return s
}

// successor returns the base of a cell for what the call leaves, and the words of that cell before
// and after the call. Only Cancel of a reservation needs the word before. It is the constant
// evicted, which stands for no word, if the call does not put the bucket into debt, or if no cell
// can hold both words.
func (s *sum) successor(m *layout) (base, before, after uint64) {
	own := s.position
	if own.blocks < s.base {
		own = position{blocks: s.base}
	}
	own = m.positionOf(m.unitsAfter(own.blocks, own.rest+s.delta-s.elapsed)) // even if clamped
	base, after = m.cellOf(balance{own, s.deficit}, s.t)
	if s.deficit > m.capacity {
		b := m.balanceOf(s.base, s.before)
		low := min(base, b.blocks)
		if delta := m.since(low, own); m.fits(delta) {
			return low, m.pack(m.since(low, b.position), b.deficit), m.pack(delta, s.deficit)
		}
	}
	return base, evicted, after
}

// first returns what a call at t leaves on a bucket that is full at start, and the word of its
// first cell.
func (m *layout) first(start, t uint64, want *request) (s sum, word uint64) {
	p := m.positionAt(start)
	s = m.charge(p.blocks, m.pack(p.rest, 0), t, want)
	return s, m.pack(s.delta, s.deficit)
}

// check returns the decision of a call at t on a cell with the given base and word.
func (m *layout) check(base, word, t uint64, want *request) tb.Decision {
	s := m.charge(base, word, t, want)
	if !s.granted {
		return s.refusal(m, want).Decision
	}
	return m.grant(min(s.deficit, m.capacity))
}

// slot returns the units from the base to the bucket's slot: the supply of that time pays its
// debt.
func (s *sum) slot(m *layout) uint64 { return s.delta + s.deficit - m.capacity }

// ahead returns the units from the reading to a number of units after the base. A late reading may
// be before the base.
func (s *sum) ahead(m *layout, units uint64) uint64 { return m.until(s.base, units, s.position) }

// grant returns the result of a granted call.
func (s *sum) grant(m *layout, r receipt) result {
	o := result{charged: s.charged, layout: m, receipt: r}
	o.Decision = m.grant(min(s.deficit, m.capacity)) // more is a debt
	if s.deficit > m.capacity {
		o.delay = m.waitFor(s.base, s.slot(m), s.t)
	}
	return o
}

// refusal returns the result of a refused call.
func (s *sum) refusal(m *layout, want *request) result {
	d := m.refusal(s.base, s.t, s.delta, s.deficit, s.charged)
	o := result{Decision: d, delay: d.RetryAfter}
	if want.debt == nil || d.RetryAfter == tb.Never {
		return o
	}
	// The same call is granted once the debt is small enough and the delay short enough.
	o.RetryAfter = 0
	if slot, debt := s.slot(m), want.debt(m); s.ahead(m, slot) > debt {
		hi, lo := m.unitsAfter(s.base, slot)
		lo, borrow := bits.Sub64(lo, debt, 0)
		o.RetryAfter = tb.Never
		if then, ok := m.supply.timeOf(hi-borrow, lo); ok {
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
func deepest(*layout) uint64       { return maxDebt }
