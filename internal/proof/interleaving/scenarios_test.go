package interleaving

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
)

// scenarios are what every schedule of is run. A reading is late where it is lower than
// one that another call brings.
var scenarios = slices.Concat(onOneKey, onTheTable, onTheMove, onCharges)

// onTheTable are about keys that come and go.
var onTheTable = []scenario{
	{
		name: "the same new key", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 1, 4}, {take, "b", 2, 4}},
			{{take, "b", 2, 7}, {look, "b", 2, 0}},
		},
	},
	{
		name: "the same new key by three", maxKeys: 4,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 1, 4}, {take, "b", 2, 4}},
			{{take, "b", 2, 7}, {look, "b", 2, 0}},
			{{take, "b", 0, 3}, {look, "c", 2, 0}},
		},
	},
	{
		name: "two new keys and one place", maxKeys: 2,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 1, 4}, {take, "b", 1, 4}},
			{{take, "c", 1, 7}, {take, "a", 1, 4}},
		},
	},
	{
		name: "a full key is evicted", maxKeys: 1, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 5, 4}},
			{{take, "a", 5, 4}, {take, "a", 5, 4}},
		},
	},
	{
		name: "three for one place", maxKeys: 1,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 5, 4}, {look, "c", 5, 0}},
			{{take, "a", 5, 4}, {take, "a", 1, 4}},
			{{take, "c", 6, 7}},
		},
	},
	{
		name: "a debtor is evicted", maxKeys: 1,
		before: []ask{{take, "a", 0, 8}},
		threads: [][]ask{
			{{take, "b", 1, 4}},
			{{take, "a", 1, 3}, {take, "a", 2, 5}},
			{{look, "a", 1, 0}, {look, "b", 1, 0}},
		},
	},
	{
		name: "the least of two is evicted", maxKeys: 2,
		before: []ask{{take, "a", 0, 2}, {take, "b", 0, 4}},
		threads: [][]ask{
			{{take, "c", 1, 4}},
			{{take, "a", 1, 5}},
			{{take, "b", 1, 1}, {take, "a", 1, 1}},
		},
	},
	{
		name: "two inserts evict two", maxKeys: 2,
		before: []ask{{take, "a", 0, 2}, {take, "b", 0, 4}},
		threads: [][]ask{
			{{take, "c", 5, 4}},
			{{take, "a", 5, 5}},
			{{take, "d", 4, 1}},
		},
	},
	{
		name: "evicted keys come back late", maxKeys: 1,
		before: []ask{{take, "a", 0, 4}},
		threads: [][]ask{
			{{take, "b", 20, 1}, {take, "a", 3, 9}},
			{{take, "a", 2, 4}, {take, "a", 5, 4}},
		},
	},
	{
		name: "an evicted key had been full for a while", maxKeys: 2,
		before: []ask{{take, "a", 0, 4}, {take, "c", 0, 10}},
		threads: [][]ask{
			{{take, "b", 9, 1}},
			{{take, "a", 1, 10}, {take, "a", 4, 3}},
		},
	},
	{
		name: "idle keys are dropped", maxKeys: 4,
		before: []ask{{take, "a", 0, 2}, {take, "b", 0, 4}},
		threads: [][]ask{
			{{take, "c", 100, 4}},
			{{take, "a", 100, 5}, {take, "b", 3, 5}},
			{{look, "b", 100, 0}},
		},
	},
	{
		name: "moved or evicted", maxKeys: 1, short: true,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{take, "a", lapse, 4}},
			{{take, "b", lapse, 3}},
		},
	},
	{
		name: "moved, evicted and back", maxKeys: 1,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{take, "a", lapse, 4}},
			{{take, "b", lapse, 3}},
			{{take, "a", lapse - 1, 5}},
		},
	},
	{
		name: "reset", maxKeys: 2, short: true,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{wipe, "a", 0, 0}, {take, "a", 1, 4}},
			{{take, "a", 1, 2}, {look, "a", 1, 0}},
		},
	},
	{
		name: "two resets, a take and an insert", maxKeys: 1,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{wipe, "a", 0, 0}, {take, "a", 1, 4}},
			{{wipe, "a", 0, 0}},
			{{take, "b", 1, 4}},
		},
	},
	{
		name: "reset and a later reading", maxKeys: 2,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{wipe, "a", 0, 0}, {take, "a", 1, 10}, {take, "a", 50, 5}},
			{{take, "a", 100, 4}},
		},
	},
	{
		name: "reset and move", maxKeys: 1,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{wipe, "a", 0, 0}},
			{{take, "a", lapse, 4}, {take, "a", lapse, 4}},
			{{take, "a", lapse - 1, 5}},
		},
	},
	{
		name: "RefuseNew", maxKeys: 1, overflow: tb.RefuseNew, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 5, 4}, {take, "b", 1, 4}},
			{{look, "b", 1, 0}, {take, "a", 1, 4}},
		},
	},
	{
		name: "RefuseNew, three keys", maxKeys: 1, overflow: tb.RefuseNew,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "b", 5, 4}, {look, "c", 5, 0}},
			{{take, "c", 3, 4}, {take, "a", 9, 4}},
			{{take, "a", 1, 4}},
		},
	},
	{
		name: "RefuseNew, two places", maxKeys: 2, overflow: tb.RefuseNew,
		before: []ask{{take, "a", 0, 2}, {take, "b", 0, 3}},
		threads: [][]ask{
			{{take, "c", 2, 4}},
			{{take, "a", 1, 4}, {look, "c", 3, 0}},
			{{take, "b", 2, 4}},
		},
	},
	{
		name: "RefuseNew, whose stamps change", maxKeys: 2, overflow: tb.RefuseNew,
		before: []ask{{take, "a", 0, 1}, {take, "b", 0, 5}, {take, "a", 0, 9}},
		threads: [][]ask{
			{{take, "c", 0, 1}, {look, "c", 0, 0}},
			{{take, "a", 20, 10}, {take, "b", 15, 5}},
		},
	},
	{
		name: "RefuseNew and reset", maxKeys: 1, overflow: tb.RefuseNew,
		before: []ask{{take, "a", 0, 5}},
		threads: [][]ask{
			{{take, "b", 1, 4}, {look, "c", 1, 0}},
			{{wipe, "a", 0, 0}, {take, "a", 1, 4}},
		},
	},
}
