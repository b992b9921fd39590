package cas

// A held bucket has a cell without a layout, so no fast path takes it for its own. Its base is half
// of the instant at which the hold ends. Its word has the debt behind the hold, in millionths of a
// token, and as the lowest bit the other half. Only Cancel changes the word in place.
//
// A bucket is held for a call at t under a layout m if its hold ends after both t and m.begin.
// Otherwise its cell is one of an era that has ended: empty, or in debt, at the end of the hold.

// heldBit is set in the owner of the cell of a held bucket. The tier is below it.
const heldBit = uint64(1) << 63

// isHeld reports whether c is the cell of a bucket that was held when it was made.
func (c *cell) isHeld() bool { return c.owner()&heldBit != 0 }

// heldUntil returns the instant at which the hold of c ends, and the debt then.
func (c *cell) heldUntil(word uint64) (until uint64, micros int64) {
	return c.base<<1 | word&1, int64(word &^ sealBit >> 1)
}

// heldCell returns a cell for b, which is held.
func (m *layout) heldCell(b balance) content {
	word := b.until & 1
	if b.deficit > m.capacity {
		word |= m.micros(b.slot(m).after(m.supply.at(b.until))) << 1
	}
	return content{heldBit | m.owner&(1<<tierBits-1), b.until >> 1, word}
}

// heldTo returns b, held until an instant, with the debt that a cell has behind a hold. If the own
// time of b is a later reading, the hold ends at its last instant, because b has had the supply
// until then.
func (m *layout) heldTo(b balance, until uint64) balance {
	end := m.supply.at(until)
	switch {
	case b.deficit > m.capacity && end.before(b.slot(m)):
		debt := min(b.slot(m).after(end), deepestDebt*m.scale)
		return balance{end.plus(debt).minus(1), m.capacity + 1, until}
	case b.deficit <= m.capacity && end.before(b.time):
		until = min(m.supply.timeOf(b.time.plus(1))-1, m.end)
		end = m.supply.at(until)
	}
	return balance{end, m.capacity, until}
}

// debtFrom returns the instant from which the debt of a bucket counts for a call at t. The time of
// a hold is none.
func (b balance) debtFrom(t uint64) uint64 { return max(t, b.until) }
