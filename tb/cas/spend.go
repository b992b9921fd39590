package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// kind is what a call does if the bucket lacks tokens.
type kind uint8

const (
	waits    kind = iota // it waits for them, in a debt of maxDebt at most, or is refused
	reserves             // the same, in a debt of one capacity at most
	settles              // it takes as many as a debt of one capacity allows
	adds                 // it takes as many as a debt of maxDebt allows
)

// maxDebt is the most tokens that calls of Wait may put a bucket into debt: two of the largest
// capacities.
const maxDebt = 2 * tb.MaxCapacity

// request is what a call asks of a bucket.
type request struct {
	kind
	tokens   float64
	estimate float64       // of a call that settles: the tokens that were charged before
	within   time.Duration // the longest delay, or 0
	keep     float64       // the tokens that must be left, 0 if the call may wait
	hold     time.Duration // for which a refusal holds the bucket, 0 if the call may wait
	until    uint64        // of a Hold, which takes nothing: the instant at which it ends
}

// partial reports whether the call takes a part of its tokens if it cannot have all of them.
func (r *request) partial() bool { return r.kind >= settles }

// isPlain reports whether the call neither waits, nor keeps, nor holds.
func (r *request) isPlain() bool { return r.within == 0 && r.keep == 0 && r.hold == 0 }

// debt returns the most units that the call may put the bucket into debt.
func (r *request) debt(m *layout) uint64 {
	if r.kind == waits || r.kind == adds {
		return maxDebt * m.scale
	}
	return m.capacity
}

// cost returns what the call asks for in units of m, or, unless it is partial, more than the
// capacity if that is above it.
func (r *request) cost(m *layout) uint64 {
	if r.partial() {
		more, _ := m.beyond(r.tokens, r.estimate)
		return more
	}
	return m.unitsOf(r.tokens)
}

// result is what a call gets.
type result struct {
	tb.Decision
	delay   time.Duration // until the tokens may be used
	charged uint64        // units, if granted
}

// decide returns what the call gets at t of a bucket with balance b in m, and the balance that it
// leaves. If the bucket cannot pay at once, a call that may wait moves the bucket's own time to its
// slot: DESIGN.md §9. A refusal leaves another balance only if it holds the bucket.
func (r *request) decide(m *layout, b balance, t uint64) (balance, result) {
	if r.until > 0 {
		if r.until <= max(t, m.begin, b.until) {
			return b, result{}
		}
		return m.heldTo(b, r.until), result{Decision: tb.Decision{Allowed: true}}
	}
	now := m.supply.at(t)
	b = b.refilled(now)
	o := result{charged: r.cost(m)}
	debtFrom := now
	if r.partial() {
		debtFrom = m.supply.at(b.debtFrom(t))
		most := m.capacity + r.debt(m)
		o.charged = min(o.charged, most-min(most, b.missing(debtFrom)))
	}
	after, keep := balance{b.time, b.deficit + o.charged, b.until}, m.unitsOf(r.keep)
	switch {
	case after.deficit+keep <= m.capacity:
		o.Decision = m.grant(after.deficit + keep)
		return after, o
	case r.within <= 0 || o.charged > m.capacity && !r.partial():
		until := t + min(uint64(r.hold), m.end-t)
		if until > max(t, m.begin) && b.until == 0 && o.charged+keep <= m.capacity {
			b = m.heldTo(b, until)
			after = balance{b.time, b.deficit + o.charged, b.until}
		}
		after.deficit += keep
		if o.Decision = m.refusal(after, t, o.charged); o.charged+keep > m.capacity {
			o.RetryAfter = tb.Never
		}
		o.delay = o.RetryAfter
		return b, o
	}
	slot := after.slot(m)
	o.delay = m.waitFor(slot, t)
	tooDeep := slot.after(debtFrom) > r.debt(m)
	switch {
	case !tooDeep && o.delay <= r.within && o.delay < tb.Never:
		o.Decision = m.grant(m.capacity)
		return balance{slot.minus(1), m.capacity + 1, b.until}, o
	case r.partial(): // the clock ends before the slot, or the debt is already deeper
		o.Decision, o.charged = m.grant(min(b.deficit, m.capacity)), 0
		return b, o
	}
	o.Remaining = m.tokensIn(m.capacity - min(m.capacity, b.deficit))
	if o.RetryAfter = o.delay; o.delay < tb.Never {
		// The same call is granted once the delay is short enough and the debt small enough.
		o.RetryAfter -= min(o.delay, r.within)
		if tooDeep {
			o.RetryAfter = max(o.RetryAfter, m.waitFor(slot.minus(r.debt(m)), t))
		}
	}
	return b, o
}

// home is where a bucket is: a key's place in the table of a Limiter, or a Bucket.
type home interface {
	// load returns the bucket's cell, or nil.
	load() *cell
	// layoutOf returns the layout of a bucket whose cell is c, or that has none. It is the layout of c
	// or a later one.
	layoutOf(c *cell) *layout
	// replace installs a new cell in place of old. It returns nil if another goroutine has replaced or
	// evicted old.
	replace(old *cell, x content) *cell
	// insert decides a call on a new bucket, and installs its first cell. done is false if another
	// goroutine has installed one.
	insert(m *layout, t uint64, want request) (o result, r receipt, done bool, err error)
	// refuses returns how long the table would refuse a new bucket, or 0.
	refuses(m *layout, t uint64) (time.Duration, error)
	shared() *limits
	times() *clock
	// entersTier reports whether a call may move the bucket to another tier.
	entersTier() bool
}

// spend decides a call at t on a bucket in any state. r is the receipt if the call is granted.
func spend[H home](h H, t uint64, want request) (o result, r receipt, err error) {
	for {
		r, found := visit(h, h.load(), t, func(m *layout, c *cell, has balance) (next balance, ok bool) {
			if next, o = want.decide(m, has, t); o.Allowed || next.until != has.until {
				return next, true
			}
			// The tier supplies the bucket from now on, so RetryAfter is exact.
			return has, c.tier() != tierOf(m.owner)
		})
		if found {
			if !o.Allowed {
				r = receipt{}
			}
			return o, r, nil
		}
		m := h.layoutOf(nil)
		if want.partial() && h.shared().owe(m, m.capacity) {
			continue
		}
		var done bool
		if o, r, done, err = h.insert(m, t, want); done { // it waits for the goroutine that evicts c
			return o, r, err
		}
	}
}

// visit lets choose choose the next balance of a bucket from the balance that it has in its layout
// m. c is the bucket's cell, or nil. choose returns false to leave the bucket as it is. found is
// false if there is no bucket. r is the receipt of the change.
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
		if !ok {
			// Another layout than the cell's may be later than the word. The word of a hold is of no
			// layout, and its cell is the bucket's until it is sealed.
			if m.owns(c) || c.isHeld() && !isSealed(word) || h.load() == c && c.word.Load() == word {
				return r, true
			}
			continue
		}
		if next.deficit > m.capacity {
			if debt := next.slot(m).after(m.supply.at(next.debtFrom(t))); h.shared().owe(m, debt) {
				continue // m may be forgotten: the next turn loads the layout again
			}
		}
		switch {
		case isSealed(word):
			if r, ok = succeed(h, m, c, word, t, has, next); ok {
				return r, true
			}
		case m.owns(c) && next.until == 0 && m.holds(c.base, next):
			r = receipt{c, m, word, m.wordOf(c.base, next)}
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
// next. done is false if another goroutine has replaced or evicted c.
func succeed[H home](
	h H, m *layout, c *cell, word, t uint64, before, next balance,
) (r receipt, done bool) {
	x := content{owner: m.owner}
	if next.until == 0 {
		x.base, r = m.successor(before, next, t)
		x.word = r.after
	} else {
		x = m.heldCell(next)
		if before.until == next.until { // both words are of one hold
			r.before = word &^ sealBit
		}
		if before == next { // it enters a tier, which rounds no debt
			x.word = r.before
		}
		r.after = x.word
	}
	r.cell, r.layout = h.replace(c, x), m
	return r, r.cell != nil
}

// look returns the bucket's cell and layout, and its balance in that layout. If there is no bucket,
// the cell is nil, the balance is full, and refused is how long a full table would refuse a new
// bucket, or 0.
func look[H home](
	h H, t uint64,
) (c *cell, m *layout, has balance, refused time.Duration, err error) {
	for {
		before := h.load()
		_, found := visit(h, before, t, func(l *layout, own *cell, b balance) (balance, bool) {
			c, m, has = own, l, b
			return b, false
		})
		if found {
			return c, m, has, 0, nil
		}
		m = h.layoutOf(nil)
		refused, err = h.refuses(m, t)
		if refused == 0 || h.load() == before { // or else the bucket itself may have filled the table
			return nil, m, balance{}, refused, err
		}
	}
}

// peek returns what a call would decide. c is what the bucket's cell has been, or nil, and m its
// layout. It still is the cell if its word is not sealed.
func peek[H home](h H, c *cell, m *layout, t uint64, want *request) (tb.Decision, error) {
	if c != nil && m.owns(c) && want.isPlain() {
		if word := c.word.Load(); !isSealed(word) { // decide, for a plain call
			cost := m.unitsOf(want.tokens)
			b := m.balanceOf(c.base, word).refilled(m.supply.at(t))
			if b.deficit += cost; b.deficit > m.capacity {
				return m.refusal(b, t, cost), nil
			}
			return m.grant(b.deficit), nil
		}
	}
	c, m, has, refused, err := look(h, t)
	if err != nil {
		return tb.Decision{}, err
	}
	_, o := want.decide(m, has, t)
	if c == nil && refused > 0 && o.Allowed {
		return tb.Decision{RetryAfter: refused}, nil
	}
	return o.Decision, nil
}

// level returns how full the bucket is at t, less the tokens that a charge keeps.
func level[H home](h H, t uint64, keep float64) (tb.Level, error) {
	c, m, has, refused, err := look(h, t)
	switch {
	case err != nil:
		return tb.Level{}, err
	case c == nil && refused > 0:
		return tb.Level{NextToken: refused, Full: refused}, nil
	}
	return m.level(has, t, m.unitsOf(keep)), nil
}
