package cas

import "sort"

// keptEras is the number of ended eras from which on those are forgotten whose buckets must all be
// full.
const keptEras = 64

// era is an ended era of a limit: the time from one change to the next. A bucket that had a number
// of tokens at its end had min(tokens + gained, most) when the present era began. Like all numbers
// here they are in millionths of a token.
type era struct {
	layout       *layout
	end          uint64 // instant
	gained, most int64
	ahead        uint64 // what the rate supplies in grace: a bucket may be so far ahead of end
}

// history is the eras before the present one. It is immutable.
type history struct{ eras []era }

// after returns the history of next, which takes the place of m. No bucket has been deeper in debt
// than owed, in millionths of a token.
func (h history) after(m, next *layout, owed uint64) history {
	const enough = 1 << 60 // fills a bucket in the deepest debt
	capacity := int64(m.micros(m.capacity))
	supplied := int64(m.microsUpTo(m.supply.at(next.begin).after(wide{})))
	eras := make([]era, len(h.eras), len(h.eras)+1)
	for i, e := range h.eras {
		e.gained = min(e.gained+supplied, enough)
		e.most = min(e.most+supplied, capacity)
		eras[i] = e
	}
	ended := *m
	ended.history = history{} // or no era would ever be collected
	ahead, _ := m.supply.rate.times(grace)
	eras = append(eras, era{&ended, next.begin, 0, capacity, m.microsUpTo(ahead.lo)})
	h.eras = eras
	full := int64(next.micros(next.capacity))
	for len(h.eras) > keptEras && h.through(h.arrived(), -int64(owed+h.eras[0].ahead), full) == full {
		h.eras = h.eras[1:]
	}
	return h
}

// arrived returns the index of the first era that ends at least grace after eras[0], so that no
// bucket of eras[0] is ahead of its end. Without such an era it is the last one.
func (h *history) arrived() int {
	last := len(h.eras) - 1
	return sort.Search(last, func(i int) bool { return h.eras[i].end-h.eras[0].end >= grace })
}

// microsUpTo returns units in millionths of a token, at most mostSettled of them.
func (m *layout) microsUpTo(units uint64) uint64 {
	return m.micros(min(units, mostSettled/maxScale*m.scale))
}

// through returns what a bucket that has a number of tokens at the end of eras[i] has at the
// beginning of the present era, whose capacity is given.
func (h *history) through(i int, tokens, capacity int64) int64 {
	return min(tokens+h.eras[i].gained, h.eras[i].most, capacity)
}

// find returns the index of the era of c, which has ended, or -1 if it is forgotten.
func (h *history) find(c *cell) int {
	first := h.eras[0].layout.owner >> tierBits
	return int(max(int64(c.owner>>tierBits-first), -1))
}

// balanceSince returns the balance in m of a cell of m or of an era before m.
func (m *layout) balanceSince(c *cell, word uint64) balance {
	if m.owns(c) {
		return m.balanceOf(c.base, word)
	}
	tokens, since := m.tokensSince(c, word)
	return m.balanceWith(tokens, m.supplyFrom(since))
}

// tokensSince returns the tokens that the bucket of a cell of an ended era has under m, in millionths
// and negative in debt. since is the instant at which it has them: the beginning of m, unless its own
// time is later.
func (m *layout) tokensSince(c *cell, word uint64) (micros int64, since uint64) {
	capacity := int64(m.micros(m.capacity))
	i := m.history.find(c)
	if i < 0 { // when the era was forgotten, its buckets were full, and so were full ones of eras[0]
		first := m.history.eras[0].layout
		return m.history.through(0, int64(first.micros(first.capacity)), capacity), m.begin
	}
	e := &m.history.eras[i]
	tokens, since := e.layout.tokensAt(e.layout.balanceOf(c.base, word), e.end)
	if since == e.end {
		return m.history.through(i, tokens, capacity), m.begin
	}
	// The bucket's own time is a reading from the future, perhaps in a later era.
	for _, e := range m.history.eras[i+1:] {
		capacity := int64(e.layout.micros(e.layout.capacity))
		tokens = min(tokens, capacity)
		if since <= e.end {
			gain := e.layout.supply.at(e.end).after(e.layout.supplyFrom(since))
			tokens = min(capacity, tokens+int64(e.layout.micros(min(gain, e.layout.capacity))))
			since = e.end
		}
	}
	return tokens, since
}
