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
		"d, b, err := l.peek(l.clock.instant(t), c.key, c.cost)\n\tc.checked = b",
		`d, at, err := l.settle(nil, l.clock.instant(t), c.key, c.cost)
	c.checked = at.bucket`),
	// Take
	mutant("what was checked is granted", casChargeGo,
		"c.taken = place{}\n\tif d.Allowed {",
		"d.Allowed = true\n\tif d.Allowed {"),
	mutant("where a charge was taken is forgotten", casChargeGo,
		"c.taken = at",
		"_ = at"),
	mutant("where a new key was charged is forgotten", limiterGo,
		"p.bucket = b",
		"_ = b"),
	mutant("a charge is taken for older than it is", bucketGo,
		"return m.grant(deficit), next, decided",
		"return m.grant(deficit), word, decided"),
	mutant("reset does not retire", ledgerGo,
		"b.retire()",
		"b.word.Load()"),
	// Undo
	mutant("given back to the bucket that the key has now", casChargeGo,
		"c.taken.bucket.giveBack(&c.limiter.meter, c.taken.word, c.cost)",
		`if b := c.limiter.table.Load(c.key); b != nil {
			b.giveBack(&c.limiter.meter, c.taken.word, c.cost)
		}`),
	// giveBack
	mutant("all of the cost is given back", bucketGo,
		"deficit -= cost - min(cost, delta-then)",
		"deficit -= min(deficit, cost)\n\t\t_ = then"),
	mutant("the time is given back", bucketGo,
		"b.word.CompareAndSwap(word, m.pack(delta, deficit))",
		"b.word.CompareAndSwap(word, m.pack(then, deficit))"),
	mutant("what is given back is stored", bucketGo,
		"if b.word.CompareAndSwap(word, m.pack(delta, deficit)) {",
		"if b.word.Store(m.pack(delta, deficit)); true {"),
	mutant("giving back is tried once", bucketGo,
		"if b.word.CompareAndSwap(word, m.pack(delta, deficit)) {",
		"if b.word.CompareAndSwap(word, m.pack(delta, deficit)); true {"),
	mutant("the word is not read again", bucketGo,
		"then, _ := m.unpack(word)\n\tfor {\n\t\tword := b.word.Load()\n",
		"then, _ := m.unpack(word)\n\tword = b.word.Load()\n\tfor {\n"),
	mutant("given back only if nobody came in between", bucketGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if t, d := m.unpack(word); isSealed(word) || t != then || d > cost {
			return
		}
		delta, deficit := m.unpack(word)`),
	mutant("an evicted bucket is brought back", bucketGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`delta, deficit := m.unpack(word)
		if word == evicted {
			delta, deficit = then, cost
		} else if isSealed(word) {
			return
		}`),
	mutant("a bucket that moved is opened again", bucketGo,
		"if isSealed(word) {\n\t\t\treturn\n\t\t}\n\t\tdelta, deficit := m.unpack(word)",
		`if word == evicted {
			return
		}
		delta, deficit := m.unpack(word &^ sealBit)`),
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
