package planted

const (
	balanceGo  = "tb/cas/balance.go"
	cellGo     = "tb/cas/cell.go"
	eraGo      = "tb/cas/era.go"
	evictionGo = "tb/cas/eviction.go"
	limitsGo   = "tb/cas/limits.go"
	placeGo    = "tb/cas/place.go"
	snapshotGo = "tb/cas/snapshot.go"
	spendGo    = "tb/cas/spend.go"
	tiersGo    = "tb/cas/tiers.go"
	wideGo     = "tb/cas/wide.go"
)

var casBugs = []bug{
	// era
	{
		"an era does not add to what the eras before have supplied", eraGo,
		"min(e.gained+supplied, enough)",
		"min(supplied, enough)",
	},
	{
		"a bucket goes through the next era without its capacity", eraGo,
		"min(e.most+supplied, capacity)",
		"e.most + supplied",
	},
	{
		"an era is forgotten while its buckets lack tokens", eraGo,
		"h.through(h.arrived(), -int64(owed+h.eras[0].ahead), full) == full {",
		"full > 0 {",
	},
	{
		"an era is forgotten while its buckets are in debt", eraGo,
		"-int64(owed+h.eras[0].ahead)",
		"-int64(h.eras[0].ahead)",
	},
	{
		"a bucket of a forgotten era has had no supply since", eraGo,
		"m.history.through(0, int64(full), int64(capacity))",
		"min(int64(full), int64(capacity))",
	},
	{
		"a bucket from the future goes through an era above its capacity", eraGo,
		"\t\ttokens = min(tokens, capacity)\n",
		"",
	},
	{
		"the rate of an era supplies until the present one", eraGo,
		"e.layout.balanceOf(c.base, word), e.end)",
		"e.layout.balanceOf(c.base, word), m.begin)",
	},
	{
		"an ended era keeps the eras before it", eraGo,
		"\tended.history = history{} // or no era would ever be collected\n",
		"",
	},
	// balance
	{
		"a debt keeps its time and not its tokens", balanceGo,
		"b.deficit > m.capacity || !now.before(b.time)",
		"!now.before(b.time)",
	},
	{
		"a debt is rounded in favour of the bucket", balanceGo,
		"\tif micros < 0 {\n\t\tmicros -= perUnit - 1\n\t}\n",
		"",
	},
	{
		"a debt begins at a whole block", balanceGo,
		"now.plus(uint64(-units) - 1)",
		"startOf(blockOf(now)).plus(uint64(-units) - 1)",
	},
	{
		"a change loses the fraction of a unit", balanceGo,
		"t - min(t, m.carried(&n, t))",
		"t",
	},
	{
		"a change moves the end of the clock", balanceGo,
		"n.end, n.begin = m.end, t",
		"n.begin = t",
	},
	{
		"a new era owns the cells of the one before", balanceGo,
		"n.owner = m.owner + 1<<tierBits",
		"n.owner = m.owner",
	},
	{
		"a fraction is carried in the units of the old limit", balanceGo,
		"per.Mul(per, new(big.Int).SetUint64(m.scale)).Mul(per, rate)",
		"per.Mul(per, rate)",
	},
	// tiers
	{
		"a limiter with tiers keeps its one limit", tiersGo,
		"\tl.limits.one.Store(nil)\n",
		"",
	},
	{
		"a tier has another phase", tiersGo,
		"m.supply.from = firstInstant % per //",
		"m.supply.from = 0 //",
	},
	{
		"a tier has a clock of its own", tiersGo,
		"\tm.end = endOf(firstInstant)\n",
		"",
	},
	{
		"all tiers own the cells of tier 0", tiersGo,
		"\tm.owner = uint64(tier)\n",
		"",
	},
	{
		"a tier of a long period is supplied from the first reading on", tiersGo,
		"per <= firstInstant {",
		"per > 0 {",
	},
	{
		"a late call leaves a tier before its change", balanceGo,
		"old.tokensAt(b, max(t, old.begin))",
		"old.tokensAt(b, t)",
	},
	{
		"a cell of another tier or era is decided on", cellGo,
		"\tif !m.owns(c) {\n\t\treturn tb.Decision{}, 0, 0, false\n\t}\n",
		"",
	},
	{
		"a cell of an ended era is charged", spendGo,
		"case m.owns(c) && m.holds(c.base, next):",
		"case m.holds(c.base, next):",
	},
	{
		"the era of a cell is counted from the first one", eraGo,
		"int64(c.owner>>tierBits-first)",
		"int64(c.owner>>tierBits)",
	},
	{
		"a limiter without tiers does not have tier 0", tiersGo,
		"last := max(len(l.limits.tiers), 1) - 1",
		"last := len(l.limits.tiers) - 1",
	},
	{
		"all tiers have the limit of the first", tiersGo,
		"l.limits.tier(i).Load()",
		"l.limits.tier(0).Load()",
	},
	// the arithmetic of a call
	{
		"a delta runs into the seal", cellGo,
		"if isSealed(word) || !m.fits(delta) {",
		"if isSealed(word) {",
	},
	{
		"a sum loses its carry", wideGo,
		"return wide{x.hi + carry, lo}",
		"return wide{x.hi + 0*carry, lo}",
	},
	{
		"a base loses its upper bits", cellGo,
		"wide{base >> (64 - blockBits), base << blockBits}",
		"wide{0, base << blockBits}",
	},
	{
		"a difference loses its borrow", wideGo,
		"bits.Sub64(x.hi, y.hi, borrow)",
		"bits.Sub64(x.hi, y.hi, 0*borrow)",
	},
	{
		"a bucket that was idle for long overflows", wideGo,
		"return math.MaxUint64",
		"return lo",
	},
	{
		"a debt is not recorded", spendGo,
		"case s.after.deficit > m.capacity && h.shared().owe(m, s.after.slot(m).after(s.now)):",
		"case false:",
	},
	{
		"a late call takes the bucket that it moves back", balanceGo,
		"if b.time.before(now) {",
		"if b.time != now {",
	},
	// reservations and settlements
	{
		"Wait keeps the tokens of a context that has ended", "tb/cas/reserve.go",
		"\t\tcancel(h, o.receipt, cost, t+uint64(o.delay))\n",
		"",
	},
	{
		"parts of a token are counted in units", "tb/cas/settle.go",
		"s.parts.Add(m.micros(part))",
		"s.parts.Add(part)",
	},
	{
		"a settlement takes the key back to the tier of its charge", "tb/cas/charge.go",
		"\tp.tier = -p.tier // the key may have changed its tier since\n",
		"",
	},
	{
		"a settlement brings a key back in tier 0", "tb/cas/place.go",
		"max(-p.tier-1, 0)",
		"0",
	},
	// the table
	{
		"Restore fills a bucket that has fewer tokens", snapshotGo,
		"l.limits.view(m, c, word, t).missing(now) >= b.missing(now):",
		"l.limits.view(m, c, word, t).missing(now) == b.missing(now):",
	},
	{
		"Restore counts a key twice", snapshotGo,
		"if most := l.table.Max(); len(notFull) > most {",
		"if most := l.table.Max(); len(all) > most {",
	},
	{
		"an insert drops a bucket as soon as it is full", placeGo,
		"t-min(t, idleTime)",
		"t",
	},
	{
		"a full bucket is evicted now, and not when it was full", evictionGo,
		"e.earliest = max(e.earliest, min(now, stamp))",
		"e.earliest = max(e.earliest, now)",
	},
	{
		"a forgiven debt counts up to two capacities", evictionGo,
		"\t\tmost = m.capacity + deepestDebt*m.scale\n",
		"\t\tmost = 2 * m.capacity\n",
	},
	{
		"a reading from before the clock is of the far future", "tb/cas/clock.go",
		"uint64(max(t.Sub(*start), -time.Duration(c.firstInstant)))",
		"uint64(t.Sub(*start))",
	},
	{
		"SetLimit reads the clock and the layout before its lock", limitsGo,
		"\ts.setting.Lock()\n\tdefer s.setting.Unlock()\n\tt, m := c.read(), tier.Load()\n",
		"\tm, t := tier.Load(), c.read()\n\ts.setting.Lock()\n\tdefer s.setting.Unlock()\n",
	},
	{
		"a slow grant is stored", spendGo,
		"return r, c.word.CompareAndSwap(word, r.after)",
		"c.word.Store(r.after)\n\t\treturn r, true",
	},
	{
		"a refund loads the layout before the cell", "tb/cas/settle.go",
		"c := h.load()\n\t\tm := h.layout()\n\t\tif c == nil {",
		"m := h.layout()\n\t\tc := h.load()\n\t\tif c == nil {",
	},
	{
		"what is unpaid is counted in old units", "tb/cas/settle.go",
		"s.unpaid.add(o.layout, more-o.charged)",
		"s.unpaid.add(m, more-o.charged)",
	},
	{
		"the limit that is set already begins an era", limitsGo,
		"\tif l == m.limit {\n\t\treturn nil\n\t}\n",
		"",
	},
	{
		"an unused Bucket gets the tokens of a new capacity", "tb/cas/setlimit.go",
		"if c != nil && m.owns(c) {",
		"if c == nil || m.owns(c) {",
	},
	{
		"a Bucket forgets the limit of its cell", "tb/cas/setlimit.go",
		"if c != nil && m.owns(c) {",
		"if c != nil {",
	},
}
