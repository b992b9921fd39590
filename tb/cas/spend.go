package cas

import "time"

// home is where a bucket is: a key's place in the table of a Limiter, or a Bucket.
type home interface {
	// load returns the bucket's cell, or nil.
	load() *cell
	// layoutOf returns the layout of a bucket whose cell is c, or that has none. It is the layout of c
	// or a later one.
	layoutOf(c *cell) *layout
	// replace installs a cell with the given base and word in place of old. It returns nil if
	// another goroutine has replaced or evicted old.
	replace(old *cell, m *layout, base, word uint64) *cell
	// insert decides a call on a full bucket, and installs its first cell. done is false if
	// another goroutine has installed one.
	insert(m *layout, t uint64, want request) (o result, done bool, err error)
	// refuses returns how long the table would refuse a new bucket, or 0.
	refuses(m *layout, t uint64) (time.Duration, error)
	shared() *limits
	now() uint64
}

// spend decides a call at t on a bucket in any state. c is the bucket's cell, or nil.
func spend[H home](h H, c *cell, t uint64, want request) (o result, err error) {
	for ; ; c = h.load() {
		r, found := visit(h, c, t, func(m *layout, c *cell, has balance) (next balance, ok bool) {
			next, o = m.decide(has, t, &want)
			switch {
			case o.Allowed:
				return next, true
			case c.tier() == tierOf(m.owner):
				return has, false
			}
			return has, true // the tier supplies the bucket from now on, so RetryAfter is exact
		})
		if found {
			if o.Allowed {
				o.receipt = r
			}
			return o, nil
		}
		m := h.layoutOf(nil)
		if want.partial && h.shared().owe(m, m.capacity) {
			continue
		}
		var done bool
		if o, done, err = h.insert(m, t, want); done { // it waits for the goroutine that evicts c
			return o, err
		}
	}
}

// visit lets choose choose the next balance of a bucket from the balance that it has in its layout
// m. c is the bucket's cell, or nil. choose returns false to leave the bucket as it is. Each turn
// of the loop installs the next balance, or seals the word, or finds that another goroutine has
// changed the bucket. found is false if there is no bucket. r is the receipt of the change.
func visit[H home](
	h H, c *cell, t uint64, choose func(m *layout, c *cell, has balance) (next balance, ok bool),
) (r receipt, found bool) {
	for ; c != nil; c = h.load() {
		m := h.layoutOf(c)
		word := c.word.Load()
		if word == evicted {
			return r, false
		}
		has := h.shared().view(m, c, word, t)
		next, ok := choose(m, c, has)
		switch {
		case !ok:
			// Another layout than the cell's may be later than the word.
			if m.owns(c) || h.load() == c && c.word.Load() == word {
				return r, true
			}
		case next.deficit > m.capacity && h.shared().owe(m, next.slot(m).after(m.supply.at(t))):
			// m may be forgotten: the next turn loads the layout again
		case isSealed(word):
			if r, ok = succeed(h, m, c, t, has, next); ok {
				return r, true
			}
		case m.owns(c) && m.holds(c.base, next):
			r = receipt{c, word, m.wordOf(c.base, next)}
			if c.word.CompareAndSwap(word, r.after) {
				return r, true
			}
		default:
			c.word.CompareAndSwap(word, word|sealBit)
		}
	}
	return r, false
}

// succeed replaces the sealed cell c, by which its bucket has the balance before, by a cell for
// next. The replacement is the grant: DESIGN.md §8 has the reason. done is false if another
// goroutine has replaced or evicted c.
func succeed[H home](
	h H, m *layout, c *cell, t uint64, before, next balance,
) (r receipt, done bool) {
	base, r := m.successor(before, next, t)
	r.cell = h.replace(c, m, base, r.after)
	return r, r.cell != nil
}

// successor returns the base of a cell for next, and its words for before and next. Only Cancel of
// a reservation needs the word for before. It is the constant evicted, which stands for no word, if
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

// receipt is the cell that a grant charged, and its words before and after the grant. Cancel needs
// them. before is a word of that cell too, if the grant put the bucket into debt.
type receipt struct {
	cell          *cell
	before, after uint64
}
