package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

const (
	casChargeGo = "tb/cas/charge.go"
	chargeGo    = "tb/charge.go"
	partGo      = "tb/cas/part.go"
	reserveGo   = "tb/cas/reserve.go"
)

// chargeMutants are variants with one bug each in the charges of several buckets, sorted by the
// step with the bug.
var chargeMutants = []overlay.Variant{
	// Peek
	mutant("Peek takes the cost", casChargeGo,
		"if d, ok := c.checked.peek(m, at, c.want.in(m)); ok {",
		"if d, _, _, ok := c.checked.take(m, at, c.want.in(m)); ok {"),
	// Take
	mutant("Take grants whatever Peek allowed", partGo,
		"d, before, after, ok := c.take(m, t, p.want.in(m))\n",
		"d, before, after, ok := c.take(m, t, p.want.in(m))\n\td.Allowed = ok\n"),
	mutant("an evicted bucket is charged", spendGo,
		"if word == evicted { // the insert",
		"if c == nil { // the insert"),
	mutant("the receipt of a charge is lost", partGo,
		"p.receipt = receipt{c, before, after}",
		"_ = before + after"),
	mutant("the receipt of a new key is lost", placeGo,
		"return s.grant(m, receipt{c, evicted, word}), true, nil",
		"c = nil\n\treturn s.grant(m, receipt{c, evicted, word}), true, nil"),
	mutant("a receipt has the word from before its grant", partGo,
		"p.receipt = receipt{c, before, after}",
		"_ = after\n\t\tp.receipt = receipt{c, before, before}"),
	mutant("a reset does not retire the bucket", evictionGo,
		"c.word.Store(evicted)",
		"c.word.Load()"),
	// Cancel
	mutant("Cancel of a charge gives back to the current bucket of the key", casChargeGo,
		"func (c *Charge[K]) Cancel() { c.cancel(c.place.shared()) }",
		`func (c *Charge[K]) Cancel() {
	if now := c.place.load(); now != nil && c.receipt.cell != nil {
		c.receipt.cell = now
	}
	c.cancel(c.place.shared())
}`),
	// giveBack
	mutant("Cancel of a charge gives back the whole cost", reserveGo,
		"units -= min(units, delta-min(delta, then))",
		"_ = then"),
	mutant("Cancel of a charge moves the bucket back in time", reserveGo,
		"next = m.pack(delta, deficit-min(deficit, units))",
		"next = m.pack(then, deficit-min(deficit, units))"),
	mutant("Cancel of a charge stores the word", reserveGo,
		"if r.cell.word.CompareAndSwap(word, next) {",
		"if r.cell.word.Store(next); true {"),
	mutant("Cancel of a charge tries only once", reserveGo,
		"if r.cell.word.CompareAndSwap(word, next) {",
		"if r.cell.word.CompareAndSwap(word, next); true {"),
	mutant("Cancel of a charge does not read the word again", reserveGo,
		"for {\n\t\tword := r.cell.word.Load()\n",
		"word := r.cell.word.Load()\n\tfor {\n"),
	mutant("Cancel of a charge gives up after a later grant", reserveGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if t, d := m.unpack(word); isSealed(word) || t != then || d > m.unitsOfCost(tokens) {
			return
		}
		delta, deficit := m.unpack(word)`),
	mutant("Cancel of a charge brings an evicted bucket back", reserveGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`delta, deficit := m.unpack(word)
		if word == evicted {
			delta, deficit = then, m.unitsOfCost(tokens)
		} else if isSealed(word) {
			return
		}`),
	mutant("Cancel of a charge removes the seal of a moved bucket", reserveGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if word == evicted {
			return
		}
		delta, deficit := m.unpack(word)`),
	// TakeAll
	mutant("TakeAll checks nothing", chargeGo,
		"if len(charges) > 1 {",
		"if false {"),
	mutant("TakeAll stops checking at the first refusal", chargeGo,
		"allowed = allowed && decisions[i].Allowed",
		"if !decisions[i].Allowed {\n\t\t\t\treturn decisions, false, nil\n\t\t\t}"),
	mutant("TakeAll counts only the last check", chargeGo,
		"allowed = allowed && decisions[i].Allowed",
		"allowed = decisions[i].Allowed"),
	mutant("TakeAll keeps the charges before a refusal", chargeGo,
		"charges[i-1].Cancel()",
		"_ = charges[i-1]"),
	mutant("TakeAll does not undo the first charge", chargeGo,
		"for ; i > 0; i-- {",
		"for ; i > 1; i-- {"),
	mutant("TakeAll skips a refused charge", chargeGo,
		"if err != nil || !d.Allowed {",
		"if err != nil {"),
}
