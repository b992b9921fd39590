package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

const settleGo = "tb/cas/settle.go"

// reservationMutants are variants with one bug each in reservations and settlements, sorted by the
// step with the bug.
var reservationMutants = []overlay.Variant{
	// Reserve
	mutant("a reservation does not mark the debt", spendGo,
		"s.delta, s.deficit, s.granted = slot-1, m.capacity+1, true",
		"s.delta, s.deficit, s.granted = slot, m.capacity, true"),
	mutant("two reservations share a slot", spendGo,
		"slot := s.slot(m)\n",
		`slot := s.slot(m)
		if delta, deficit := m.unpack(word); deficit > m.capacity {
			slot = delta + 1
		}
`),
	mutant("a reservation is stored", spendGo,
		"if c.word.CompareAndSwap(word, next) {",
		"if c.word.Store(next); true {"),
	mutant("a debt has no bound", spendGo,
		"s.ahead(m, slot) <= want.debt(m)",
		"s.ahead(m, slot) > 0"),
	mutant("debt is counted from the base", spendGo,
		"s.ahead(m, slot) <= want.debt(m)",
		"slot-s.elapsed <= want.debt(m)"),
	mutant("a reservation may be used at once", spendGo,
		"o.delay = m.waitFor(s.base, s.slot(m), s.t)",
		"o.delay = 0"),
	mutant("a reservation keeps no receipt", reserveGo,
		"receipt: o.receipt}",
		"receipt: receipt{o.receipt.cell, o.receipt.after, o.receipt.after}}"),
	// Cancel
	mutant("a reservation is cancelled twice", reserveGo,
		"if r.ended.CompareAndSwap(false, true) {\n\t\tcancel(",
		"if r.ended.CompareAndSwap(false, true); true {\n\t\tcancel("),
	mutant("Cancel gives back what was used", reserveGo,
		"if h.now() <= usable {",
		"if h.now() <= usable+1<<62 {"),
	mutant("Cancel stores the word", reserveGo,
		"if r.cell.word.CompareAndSwap(word, next) {",
		"if r.cell.word.Store(next); true {"),
	mutant("Cancel tries only once", reserveGo,
		"if r.cell.word.CompareAndSwap(word, next) {",
		"if r.cell.word.CompareAndSwap(word, next); true {"),
	mutant("Cancel gives back one unit more after each attempt", reserveGo,
		"if r.cell.word.CompareAndSwap(word, next) {",
		"if then++; r.cell.word.CompareAndSwap(word, next) {"),
	mutant("Cancel gives back under a later reservation", reserveGo,
		"case deficit > m.capacity:\n",
		"case false:\n"),
	mutant("Cancel restores a bucket that has changed", reserveGo,
		"case word == r.after && deficitThen > m.capacity:",
		"case deficitThen > m.capacity:"),
	mutant("a reservation that moves its bucket is not cancelled", spendGo,
		"return low, m.pack(m.since(low, b.position), b.deficit), m.pack(delta, s.deficit)",
		"return low, m.pack(delta, s.deficit), m.pack(delta, s.deficit)"),
	mutant("Cancel gives back the supply since the slot", reserveGo,
		"units -= min(units, delta-min(delta, then))",
		"_ = then"),
	mutant("Cancel removes the seal of a moved bucket", reserveGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if word == evicted {
			return
		}
		delta, deficit := m.unpack(word)`),
	// Settle
	mutant("a reservation is settled after Cancel", reserveGo,
		"if r.ended.CompareAndSwap(false, true) {\n\t\tsettle(",
		"if r.ended.CompareAndSwap(false, true); true {\n\t\tsettle("),
	mutant("a refund is stored", settleGo,
		"if c.word.CompareAndSwap(word, m.pack(delta, own.deficit)) {",
		"if c.word.Store(m.pack(delta, own.deficit)); true {"),
	mutant("a refund is lost if the bucket changes", settleGo,
		"if c.word.CompareAndSwap(word, m.pack(delta, own.deficit)) {",
		"if c.word.CompareAndSwap(word, m.pack(delta, own.deficit)); true {"),
	mutant("a refund removes the seal", settleGo,
		"own.blocks >= base && !isSealed(word) && m.fits(delta):",
		"own.blocks >= base && m.fits(delta):"),
	mutant("a refund moves a bucket without a seal", settleGo,
		"case !isSealed(word):",
		"case false:"),
	mutant("a refund is lost if the bucket moves", settleGo,
		"if h.replace(c, m, base, next) != nil {",
		"if h.replace(c, m, base, next); true {"),
	mutant("a refund leaves the slot", settleGo,
		"bits.Sub64(lo, min(units, debt), 0)",
		"bits.Sub64(lo, 0, 0)"),
	mutant("a refund pays no debt", settleGo,
		"debt := m.until(base, slot, p)",
		"debt := uint64(0)"),
	mutant("a settlement is refused if the bucket cannot pay", settleGo,
		"tokens: actual, rest: true, charged: estimate,",
		"tokens: actual, charged: estimate,"),
	mutant("unpaid tokens are not counted", settleGo,
		"s.unpaid.add(o.layout, more-o.charged)",
		"_ = more"),
}
