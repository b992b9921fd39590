package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

const (
	casChargeGo = "tb/cas/charge.go"
	chargeGo    = "tb/charge.go"
)

// chargeMutants are bugs in what takes from several buckets, by the step that they are in.
var chargeMutants = []overlay.Variant{
	// Check
	mutant("a look at a bucket takes from it", casChargeGo,
		"d, checked, err := l.peek(l.clock.instant(t), c.key, c.cost)\n\tc.checked = checked",
		`d, taken, err := l.takeSlow(nil, l.clock.instant(t), c.key, c.cost)
	c.checked = taken.cell`),
	// Take
	mutant("what was checked is granted", casChargeGo,
		"c.taken = receipt{}\n\tif d.Allowed {",
		"d.Allowed = true\n\tif d.Allowed {"),
	mutant("where a charge was taken is forgotten", casChargeGo,
		"c.taken = taken",
		"_ = taken"),
	mutant("where a new key was charged is forgotten", limiterGo,
		"r.cell = c",
		"_ = c"),
	mutant("a charge is taken for older than it is", cellGo,
		"return m.grant(deficit), next, decided",
		"return m.grant(deficit), word, decided"),
	mutant("reset does not retire", evictionGo,
		"c.word.Store(evicted)",
		"c.word.Load()"),
	// Undo
	mutant("given back to the bucket that the key has now", casChargeGo,
		"c.taken.cell.giveBack(&c.limiter.layout, c.taken.word, c.cost)",
		`if now := c.limiter.table.Load(c.key); now != nil {
			now.giveBack(&c.limiter.layout, c.taken.word, c.cost)
		}`),
	// giveBack
	mutant("all of the cost is given back", cellGo,
		"deficit -= cost - min(cost, delta-then)",
		"deficit -= min(deficit, cost)\n\t\t_ = then"),
	mutant("the time is given back", cellGo,
		"c.word.CompareAndSwap(word, m.pack(delta, deficit))",
		"c.word.CompareAndSwap(word, m.pack(then, deficit))"),
	mutant("what is given back is stored", cellGo,
		"if c.word.CompareAndSwap(word, m.pack(delta, deficit)) {",
		"if c.word.Store(m.pack(delta, deficit)); true {"),
	mutant("giving back is tried once", cellGo,
		"if c.word.CompareAndSwap(word, m.pack(delta, deficit)) {",
		"if c.word.CompareAndSwap(word, m.pack(delta, deficit)); true {"),
	mutant("the word is not read again", cellGo,
		"then, _ := m.unpack(granted)\n\tfor {\n\t\tword := c.word.Load()\n",
		"then, _ := m.unpack(granted)\n\tword := c.word.Load()\n\tfor {\n"),
	mutant("given back only if nobody came in between", cellGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if t, d := m.unpack(word); isSealed(word) || t != then || d > cost {
			return
		}
		delta, deficit := m.unpack(word)`),
	mutant("an evicted bucket is brought back", cellGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`delta, deficit := m.unpack(word)
		if word == evicted {
			delta, deficit = then, cost
		} else if isSealed(word) {
			return
		}`),
	mutant("a bucket that moved is opened again", cellGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if word == evicted {
			return
		}
		delta, deficit := m.unpack(word)`),
	// TakeAll
	mutant("nothing is checked", chargeGo,
		"if len(charges) > 1 {",
		"if false {"),
	mutant("nothing is checked after the first refusal", chargeGo,
		"allowed = allowed && decisions[i].Allowed",
		"if !decisions[i].Allowed {\n\t\t\t\treturn false, nil\n\t\t\t}"),
	mutant("only the last check counts", chargeGo,
		"allowed = allowed && decisions[i].Allowed",
		"allowed = decisions[i].Allowed"),
	mutant("what was taken is kept", chargeGo,
		"charges[i-1].Undo()",
		"_ = charges[i-1]"),
	mutant("the first charge is not undone", chargeGo,
		"for ; i > 0; i-- {",
		"for ; i > 1; i-- {"),
	mutant("a charge that is refused is passed over", chargeGo,
		"if err != nil || !d.Allowed {",
		"if err != nil {"),
}
