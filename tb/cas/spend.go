package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// maxDebt is the most units that calls of Wait may put a bucket into debt: 2,147 tokens if a token
// is a million units, and at least two capacities.
const maxDebt = 1 << 31

// amount is a number of tokens, and the units that it is in one layout. With part, it is the
// amount beyond that number of tokens.
type amount struct {
	tokens, part float64
	layout       *layout
	units        uint64
}

// in returns the amount in units of m, or more than the capacity if it is above it.
func (a *amount) in(m *layout) uint64 {
	if a.layout != m {
		a.layout = m
		if a.part == 0 {
			a.units, _ = m.unitsOfCost(a.tokens)
		} else {
			a.units, _ = m.beyond(a.tokens, a.part)
		}
	}
	return a.units
}

// terms is what a call asks of a bucket.
type terms struct {
	amount
	debt   func(m *layout) uint64 // the most debt in units; nil for a call that does not wait
	within time.Duration          // the longest delay of a call that waits
	rest   bool                   // charge as much of the amount as debt allows
}

// outcome is the result of a call.
type outcome struct {
	tb.Decision
	delay   time.Duration // until the tokens may be used
	charged uint64        // units, if granted
	layout  *layout       // of these units
	receipt receipt
}

// receipt is the cell that a grant charged, and its words before and after the grant. Undo needs
// them. If the grant made the cell, before is the word evicted.
type receipt struct {
	cell          *cell
	before, after uint64
}

// home is where a bucket is: a key's place in the table of a Limiter, or a Bucket.
type home interface {
	// load returns the bucket's cell, or nil.
	load() *cell
	// layout returns the bucket's layout. A cell that was loaded before does not have a layout
	// that came later.
	layout() *layout
	// replace installs a cell with the given base and word in place of old. It returns nil if
	// another goroutine has replaced or removed old.
	replace(old *cell, m *layout, base, word uint64) *cell
	// insert decides a call on a full bucket, and installs its first cell. done is false if
	// another goroutine has installed one.
	insert(m *layout, t uint64, want terms) (o outcome, done bool, err error)
	shared() *limits
	now() uint64
}

// spend decides a call at t on a bucket in any state. c is the bucket's cell, or nil. Each turn of
// the loop decides, or seals the word, or finds that another goroutine has changed the bucket.
func spend[H home](h H, c *cell, t uint64, want terms) (outcome, error) {
	for ; ; c = h.load() {
		m := h.layout()
		word := evicted
		if c != nil {
			word = c.word.Load()
		}
		if word == evicted { // the insert waits for the goroutine that evicts the cell
			if o, done, err := h.insert(m, t, want); done {
				return o, err
			}
			continue
		}
		base, seen := h.shared().view(m, c.base, word, t)
		s := m.charge(base, seen, t, &want)
		if !s.granted && (base == c.base || !m.tiered || tierOf(c.base) == tierOf(base)) {
			return s.refusal(m, &want), nil
		}
		switch {
		case base == c.base && !isSealed(word) && m.fits(s.delta):
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
			base, next := m.successor(base, s.elapsed, s.delta, s.deficit, t)
			if now := h.replace(c, m, base, next); now != nil {
				return s.grant(m, receipt{now, evicted, next}), nil
			}
		}
	}
}

// sum is a call on a cell: what it would leave, and whether it is granted.
type sum struct {
	base, t, elapsed uint64
	delta, deficit   uint64
	charged          uint64
	granted          bool
}

// charge returns what a call at t leaves on a cell with the given base and word. If the bucket
// cannot pay at once, a call that may wait moves the bucket's own time to its slot, at which it
// can. There the bucket is empty. The word holds the unit before the slot and a deficit of the
// capacity and one unit, which marks a bucket in debt.
func (m *layout) charge(base, word, t uint64, want *terms) sum {
	p := m.positionAt(t)
	s := sum{base: base, t: t, elapsed: m.since(base, p), charged: want.in(m)}
	s.delta, s.deficit, _ = m.step(word, s.elapsed, 0)
	if want.rest {
		most := s.elapsed + m.capacity + want.debt(m)
		most -= min(most, m.until(base, 0, p)) // a late reading may be before the base
		s.charged = min(s.charged, most-min(most, s.delta+s.deficit))
	}
	s.deficit += s.charged
	switch {
	case s.deficit <= m.capacity:
		s.granted = true
	case want.debt != nil && (s.charged <= m.capacity || want.rest):
		slot := s.slot(m)
		wait := m.waitFor(base, slot, t)
		if m.until(base, slot, p) <= want.debt(m) && wait <= want.within && wait < tb.Never {
			s.delta, s.deficit, s.granted = slot-1, m.capacity+1, true
		}
	}
	return s
}

// first returns what a call at t leaves on a full bucket, and the word of its first cell.
func (m *layout) first(t uint64, want *terms) (s sum, word uint64) {
	p := m.positionAt(t)
	s = m.charge(p.blocks, m.pack(p.rest, 0), t, want)
	return s, m.pack(s.delta, s.deficit)
}

// check returns the decision of a call at t on a cell with the given base and word.
func (m *layout) check(base, word, t uint64, want *terms) tb.Decision {
	s := m.charge(base, word, t, want)
	if !s.granted {
		return s.refusal(m, want).Decision
	}
	return m.grant(s.deficit)
}

// slot returns the units from the base to the bucket's slot: the supply of that time pays its
// debt.
func (s *sum) slot(m *layout) uint64 { return s.delta + s.deficit - m.capacity }

// grant returns the outcome of a granted call.
func (s *sum) grant(m *layout, r receipt) outcome {
	o := outcome{Decision: m.grant(s.deficit), charged: s.charged, layout: m, receipt: r}
	if s.deficit > m.capacity {
		o.delay = m.waitFor(s.base, s.slot(m), s.t)
	}
	return o
}

// refusal returns the outcome of a refused call.
func (s *sum) refusal(m *layout, want *terms) outcome {
	d := m.refusal(s.base, s.t, s.delta, s.deficit, s.charged)
	o := outcome{Decision: d, delay: d.RetryAfter}
	if want.debt == nil || d.RetryAfter == tb.Never {
		return o
	}
	// The same call is granted once the debt is small enough and the delay short enough.
	o.RetryAfter = 0
	if slot, debt := s.slot(m), want.debt(m); m.until(s.base, slot, m.positionAt(s.t)) > debt {
		base, units := m.before(s.base, slot, debt)
		o.RetryAfter = m.waitFor(base, units, s.t)
	}
	if o.delay > want.within {
		o.RetryAfter = max(o.RetryAfter, o.delay-want.within)
	}
	return o
}

// oneCapacity and deepest are the debts that reservations and calls of Wait may leave.
func oneCapacity(m *layout) uint64 { return m.capacity }
func deepest(*layout) uint64       { return maxDebt }
