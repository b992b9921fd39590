package planted

var mutexBugs = []bug{
	{
		"the reference shares the memory of a key with the caller", "tb/mutex/eviction.go",
		"\tcopyStrings(&b.key)\n",
		"",
	},
	{
		"Cancel gives back to a bucket of another era", "tb/mutex/reserve.go",
		" || b.moves != r.after.moves {",
		" {",
	},
	{
		"a refund leaves the mark of a debt", "tb/mutex/state.go",
		"b.tokens, b.inDebt = min(l.capacity, units-debt), false",
		"b.tokens = min(l.capacity, units-debt)",
	},
	{
		"a bucket goes through an era above its capacity", "tb/mutex/tier.go",
		"\t\ttokens = min(tokens, l.micros(l.capacity))\n",
		"",
	},
	{
		"a change of the limit leaves the order of eviction", "tb/mutex/tier.go",
		"\tfor _, b := range l.buckets {\n\t\tl.rank(b)\n\t}\n",
		"",
	},
	{
		"the reference brings a settled key back in tier 0", "tb/mutex/tier.go",
		"l.tiers[max(-asked-1, 0)]",
		"l.tiers[0]",
	},
	{
		"a new key drops one idle bucket", "tb/mutex/eviction.go",
		"for range idleDrops {",
		"for range 1 {",
	},
}
