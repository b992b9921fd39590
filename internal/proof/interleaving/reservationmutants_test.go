package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

const settleGo = "tb/cas/settle.go"

// reservationMutants are variants with one bug each in reservations and settlements, sorted by the
// step with the bug.
var reservationMutants = []overlay.Variant{
	// Reserve
	mutant("a reservation does not mark the debt", spendGo,
		"s.after, s.granted = balance{slot.minus(1), m.capacity + 1}, true",
		"s.after, s.granted = balance{slot, m.capacity}, true"),
	mutant("two reservations share a slot", spendGo,
		"slot := s.after.slot(m)\n",
		`slot := s.after.slot(m)
		if b.deficit > m.capacity {
			slot = b.slot(m)
		}
`),
	mutant("a reservation is stored", spendGo,
		"return r, c.word.CompareAndSwap(word, r.after)",
		"c.word.Store(r.after)\n\t\treturn r, true"),
	mutant("a debt has no bound", spendGo,
		"slot.after(now) <= want.debt(m)",
		"slot.after(now) > 0"),
	mutant("debt is counted from the base", spendGo,
		"slot.after(now) <= want.debt(m)",
		"slot.after(s.after.time) <= want.debt(m)"),
	mutant("a reservation may be used at once", spendGo,
		"o.delay = m.waitFor(s.after.slot(m), s.t)",
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
		"receipt{before: m.wordOf(low, before), after:",
		"receipt{before: m.wordOf(low, next), after:"),
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
	mutant("a refund is lost if the bucket changes", settleGo,
		"_, done = swap(",
		"done = true\n\t\t_, _ = swap("),
	mutant("a swap removes the seal", spendGo,
		"case isSealed(word):",
		"case isSealed(word) && !(m.owns(c) && m.holds(c.base, next)):"),
	mutant("a refund leaves the slot", settleGo,
		"slot.minus(min(units, debt))",
		"slot.minus(0)"),
	mutant("a refund pays no debt", settleGo,
		"debt := slot.after(now)",
		"debt := uint64(0)"),
	mutant("a settlement is refused if the bucket cannot pay", settleGo,
		"tokens: actual, rest: true, charged: estimate,",
		"tokens: actual, charged: estimate,"),
	mutant("unpaid tokens are not counted", settleGo,
		"s.unpaid.add(o.layout, more-o.charged)",
		"_ = more"),
}
