package interleaving

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"

const (
	balanceGo = "tb/cas/balance.go"
	eraGo     = "tb/cas/era.go"
	limitsGo  = "tb/cas/limits.go"
)

// limitMutants are variants with one bug each in a change of the limit.
var limitMutants = []overlay.Variant{
	// SetLimit
	mutant("two SetLimits do not exclude each other", limitsGo,
		"s.setting.Lock()\n\tdefer s.setting.Unlock()",
		""),
	mutant("a SetLimit changes the past", limitsGo,
		"max(t, m.begin)",
		"t"),
	mutant("a layout is there before its supply", limitsGo,
		"tier.Store(ending(m, t).change(l, max(t, m.begin), s.owed.Load()))",
		`next := ending(m, t).change(l, max(t, m.begin), s.owed.Load())
	early := *next
	early.supply.from = 0
	tier.Store(&early)
	tier.Store(next)`),
	mutant("the supply starts over", balanceGo,
		"n.supply.from = t - min(t, m.carried(&n, t))",
		""),
	mutant("a new era owns the cells of the one before", balanceGo,
		"n.owner = m.owner + 1<<tierBits",
		"n.owner = m.owner"),
	mutant("the eras before are forgotten", balanceGo,
		"n.history = m.history.after(m, &n, owed)",
		"n.history = history{eras: []era{{layout: &n}}}"),
	// the layout of a cell
	mutant("the slow path keeps the layout of its first turn", spendGo,
		"for ; ; c = h.load() {\n\t\tm := h.layout()\n",
		"m := h.layout()\n\tfor ; ; c = h.load() {\n"),
	mutant("a look-up loads the layout before the cell", placeGo,
		"c = p.load()\n\t\tm = p.layout()\n",
		"m = p.layout()\n\t\tc = p.load()\n"),
	mutant("a settlement loads the layout before the cell", settleGo,
		"c := h.load()\n\t\tm := h.layout()\n\t\tif c == nil {",
		"m := h.layout()\n\t\tc := h.load()\n\t\tif c == nil {"),
	mutant("a sealed cell that was replaced refuses a call", spendGo,
		"if isSealed(word) && h.load() != c {",
		"if isSealed(word) && h.load() == nil {"),
	mutant("a look trusts a sealed cell that was replaced", placeGo,
		"p.load() == c && c.word.Load() == own {",
		"c != nil {"),
	mutant("a look at a Bucket trusts a sealed cell that was replaced", bucketGo,
		"!isSealed(word) || b.load() == c {",
		"c != nil {"),
	// the view of a cell of an ended era
	mutant("a cell of an ended era is taken for a new one", limitsGo,
		"if m.owns(c) {\n\t\treturn m.balanceOf(",
		"if true {\n\t\treturn m.balanceOf("),
	mutant("a new era forgives debt", balanceGo,
		"if units >= 0 {",
		"if units = max(0, units); units >= 0 {"),
	mutant("a bucket that is ahead of a change has its own time from a unit before", balanceGo,
		"m.supply.timeOf(b.time.plus(1)) // it",
		"m.supply.timeOf(b.time) // it"),
	mutant("a bucket gets a new era from its own time on", eraGo,
		"m.balanceWith(tokens, m.supplyFrom(since))",
		"m.balanceWith(tokens, m.supplyFrom(m.begin))"),
	mutant("a settlement counts what is unpaid in the units of before", settleGo,
		"s.unpaid.add(o.layout, more-o.charged)",
		"s.unpaid.add(m, more-o.charged)"),
	mutant("a settlement is charged in new units and compared in those of before", settleGo,
		"more, _ = o.layout.beyond(actual, estimate)\n",
		""),
	mutant("Cancel reads a cell in the present layout", reserveGo,
		"m := s.owner(r.cell)",
		"m := s.of(r.cell).Load()"),
}
