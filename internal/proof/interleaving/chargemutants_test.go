package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

const (
	casChargeGo = "tb/cas/charge.go"
	chargeGo    = "tb/charge.go"
)

// chargeMutants are variants with one bug each in the charges of several buckets, sorted by the
// step with the bug.
var chargeMutants = []overlay.Variant{
	// Check
	mutant("Check takes the cost", casChargeGo,
		"d, checked, err := l.peek(l.clock.instant(t), c.key, c.cost)\n\tc.checked = checked",
		`d, taken, err := l.takeSlow(nil, l.clock.instant(t), c.key, c.cost)
	c.checked = taken.cell`),
	// Take
	mutant("Take grants whatever Check allowed", casChargeGo,
		"c.taken = receipt{}\n\tif d.Allowed {",
		"d.Allowed = true\n\tif d.Allowed {"),
	mutant("the receipt of a charge is lost", casChargeGo,
		"c.taken = taken",
		"_ = taken"),
	mutant("the receipt of a new key is lost", limiterGo,
		"r.cell = c",
		"_ = c"),
	mutant("a receipt has the word from before its grant", cellGo,
		"return m.grant(deficit), next, decided",
		"return m.grant(deficit), word, decided"),
	mutant("a reset does not retire the bucket", evictionGo,
		"c.word.Store(evicted)",
		"c.word.Load()"),
	// Undo
	mutant("Undo gives back to the current bucket of the key", casChargeGo,
		"c.taken.cell.giveBack(&c.limiter.layout, c.taken.word, c.cost)",
		`if now := c.limiter.table.Load(c.key); now != nil {
			now.giveBack(&c.limiter.layout, c.taken.word, c.cost)
		}`),
	// giveBack
	mutant("Undo gives back the whole cost", cellGo,
		"deficit -= cost - min(cost, delta-then)",
		"deficit -= min(deficit, cost)\n\t\t_ = then"),
	mutant("Undo moves the bucket back in time", cellGo,
		"c.word.CompareAndSwap(word, m.pack(delta, deficit))",
		"c.word.CompareAndSwap(word, m.pack(then, deficit))"),
	mutant("Undo stores the word", cellGo,
		"if c.word.CompareAndSwap(word, m.pack(delta, deficit)) {",
		"if c.word.Store(m.pack(delta, deficit)); true {"),
	mutant("Undo tries only once", cellGo,
		"if c.word.CompareAndSwap(word, m.pack(delta, deficit)) {",
		"if c.word.CompareAndSwap(word, m.pack(delta, deficit)); true {"),
	mutant("Undo does not read the word again", cellGo,
		"then, _ := m.unpack(stored)\n\tfor {\n\t\tword := c.word.Load()\n",
		"then, _ := m.unpack(stored)\n\tword := c.word.Load()\n\tfor {\n"),
	mutant("Undo gives up after a later grant", cellGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if t, d := m.unpack(word); isSealed(word) || t != then || d > cost {
			return
		}
		delta, deficit := m.unpack(word)`),
	mutant("Undo brings an evicted bucket back", cellGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`delta, deficit := m.unpack(word)
		if word == evicted {
			delta, deficit = then, cost
		} else if isSealed(word) {
			return
		}`),
	mutant("Undo removes the seal of a moved bucket", cellGo,
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
		"if !decisions[i].Allowed {\n\t\t\t\treturn false, nil\n\t\t\t}"),
	mutant("TakeAll counts only the last check", chargeGo,
		"allowed = allowed && decisions[i].Allowed",
		"allowed = decisions[i].Allowed"),
	mutant("TakeAll keeps the charges before a refusal", chargeGo,
		"charges[i-1].Undo()",
		"_ = charges[i-1]"),
	mutant("TakeAll does not undo the first charge", chargeGo,
		"for ; i > 0; i-- {",
		"for ; i > 1; i-- {"),
	mutant("TakeAll skips a refused charge", chargeGo,
		"if err != nil || !d.Allowed {",
		"if err != nil {"),
}
