package cas

import "sort"

// keptEras is the number of ended eras from which on those are forgotten whose buckets must all be
// full.
const keptEras = 64

// era is an ended era of a limit: the time from one change to the next.
type era struct {
	layout *layout
	end    uint64 // instant

	// supplied is what the rates have supplied in the eras up to this one, without the first. Only
	// differences count, and between eras that are kept they do not overflow. Like all numbers here
	// it is in millionths of a token.
	supplied uint64

	ahead uint64 // what the rate supplies in grace: a bucket may be so far ahead of end
}

// history is the eras before the present one. It is immutable; a longer history may share its
// memory.
type history struct {
	eras []era
	lows *low
}

// low is an era that limits what a bucket can have. At the end of the era, a bucket of it or of an
// earlier one has at most the era's capacity. From then on it gains what is supplied, so it has at
// most room + supplied. lows link the eras with the least rooms: all later eras have greater ones.
type low struct {
	era   int // an index of eras
	room  uint64
	older *low
}

// after returns the history of next, which takes the place of m. No bucket has been deeper in debt
// than owed, in millionths of a token.
func (h history) after(m, next *layout, owed uint64) history {
	ended := *m
	ended.history = history{} // or no era would ever be collected
	ahead, _ := m.supply.rate.times(grace)
	e := era{layout: &ended, end: next.begin, ahead: m.microsUpTo(ahead.lo)}
	capacity := m.micros(m.capacity)
	if n := len(h.eras); n > 0 {
		units := m.supply.at(next.begin).after(wide{})
		e.supplied = h.eras[n-1].supplied + m.microsUpTo(units)
		room := capacity - e.supplied
		for h.lows != nil && int64(h.lows.room-room) >= 0 {
			h.lows = h.lows.older
		}
		h.lows = &low{n, room, h.lows}
	}
	h.eras = append(h.eras, e)
	full := int64(next.micros(next.capacity))
	for len(h.eras) > keptEras && h.through(h.arrived(), -int64(owed+h.eras[0].ahead), full) == full {
		h.eras, h.lows = h.eras[1:], nil // a bucket in debt came through all lows, and was full
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
	supplied := h.eras[len(h.eras)-1].supplied
	tokens = min(capacity, tokens+int64(supplied-h.eras[i].supplied))
	for l := h.lows; l != nil && l.era > i; l = l.older {
		tokens = min(tokens, int64(l.room+supplied))
	}
	return tokens
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
	i := m.history.find(c)
	if i < 0 { // when the era was forgotten, its buckets were full, and so were full ones of eras[0]
		first := m.history.eras[0].layout
		full, capacity := first.micros(first.capacity), m.micros(m.capacity)
		return m.balanceWith(m.history.through(0, int64(full), int64(capacity)), m.supplyFrom(m.begin))
	}
	e := &m.history.eras[i]
	tokens, since := e.layout.tokensAt(e.layout.balanceOf(c.base, word), e.end)
	if since == e.end {
		capacity := int64(m.micros(m.capacity))
		return m.balanceWith(m.history.through(i, tokens, capacity), m.supplyFrom(m.begin))
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
	return m.balanceWith(tokens, m.supplyFrom(since))
}
