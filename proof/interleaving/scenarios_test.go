package interleaving

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/tb"
)

// scenarios are the programs to explore. A reading is late if it is lower than a reading that
// another call brings.
var scenarios = slices.Concat(onOneKey, onTheTable, onTheMove, onCharges,
	onReservations, onSettlements, onLimits, onTiers, onHolds)

// onTheTable has scenarios in which keys are inserted, evicted and reset.
var onTheTable = []scenario{
	{
		name: "the same new key", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 1, 4}, {take, "b", 2, 4}},
		second: []call{{take, "b", 2, 7}, {peek, "b", 2, 0}},
	},
	{
		name: "the same new key by three", maxKeys: 4,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 1, 4}, {take, "b", 2, 4}},
		second: []call{{take, "b", 2, 7}, {peek, "b", 2, 0}},
		third:  []call{{take, "b", 0, 3}, {peek, "c", 2, 0}},
	},
	{
		name: "two new keys and one slot", maxKeys: 2,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 1, 4}, {take, "b", 1, 4}},
		second: []call{{take, "c", 1, 7}, {take, "a", 1, 4}},
	},
	{
		name: "a full key is evicted", maxKeys: 1, small: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{take, "a", 5, 4}, {take, "a", 5, 4}},
	},
	{
		name: "three for one slot", maxKeys: 1, wide: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 5, 4}, {peek, "c", 5, 0}},
		second: []call{{take, "a", 5, 4}, {take, "a", 1, 4}},
		third:  []call{{take, "c", 6, 7}},
	},
	{
		name: "a debtor is evicted", maxKeys: 1,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{take, "b", 1, 4}},
		second: []call{{take, "a", 1, 3}, {take, "a", 2, 5}},
		third:  []call{{peek, "a", 1, 0}, {peek, "b", 1, 0}},
	},
	{
		name: "the least of two is evicted", maxKeys: 2,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 4}},
		first:  []call{{take, "c", 1, 4}},
		second: []call{{take, "a", 1, 5}},
		third:  []call{{take, "b", 1, 1}, {take, "a", 1, 1}},
	},
	{
		name: "two inserts evict two", maxKeys: 2,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 4}},
		first:  []call{{take, "c", 5, 4}},
		second: []call{{take, "a", 5, 5}},
		third:  []call{{take, "d", 4, 1}},
	},
	{
		name: "evicted keys come back late", maxKeys: 1,
		before: []call{{take, "a", 0, 4}},
		first:  []call{{take, "b", 20, 1}, {take, "a", 3, 9}},
		second: []call{{take, "a", 2, 4}, {take, "a", 5, 4}},
	},
	{
		name: "an evicted key had been full for a while", maxKeys: 2,
		before: []call{{take, "a", 0, 4}, {take, "c", 0, 10}},
		first:  []call{{take, "b", 9, 1}},
		second: []call{{take, "a", 1, 10}, {take, "a", 4, 3}},
	},
	{
		name: "idle keys are dropped", maxKeys: 4,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 4}},
		first:  []call{{take, "c", 100, 4}},
		second: []call{{take, "a", 100, 5}, {take, "b", 3, 5}},
		third:  []call{{peek, "b", 100, 0}},
	},
	{
		name: "moved or evicted", maxKeys: 1, small: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "a", exhausted, 4}},
		second: []call{{take, "b", exhausted, 3}},
	},
	{
		name: "moved, evicted and back", maxKeys: 1, wide: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "a", exhausted, 4}},
		second: []call{{take, "b", exhausted, 3}},
		third:  []call{{take, "a", exhausted - 1, 5}},
	},
	{
		name: "reset", maxKeys: 2, small: true, undone: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{reset, "a", 0, 0}, {take, "a", 1, 4}},
		second: []call{{take, "a", 1, 2}, {peek, "a", 1, 0}},
	},
	{
		name: "two resets and an insert", maxKeys: 1, undone: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{reset, "a", 0, 0}},
		second: []call{{reset, "a", 0, 0}, {take, "b", 1, 4}},
	},
	{
		name: "reset and a later reading", maxKeys: 2, undone: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{reset, "a", 0, 0}, {take, "a", 1, 10}, {take, "a", 50, 5}},
		second: []call{{take, "a", 100, 4}},
	},
	{
		name: "reset and move", maxKeys: 1, undone: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{reset, "a", 0, 0}, {take, "a", exhausted - 1, 5}},
		second: []call{{take, "a", exhausted, 4}, {take, "a", exhausted, 4}},
	},
	{
		name: "RefuseNew", maxKeys: 1, overflow: tb.RefuseNew, small: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 5, 4}, {take, "b", 1, 4}},
		second: []call{{peek, "b", 1, 0}, {take, "a", 1, 4}},
	},
	{
		name: "RefuseNew, three keys", maxKeys: 1, wide: true, overflow: tb.RefuseNew,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "b", 5, 4}, {peek, "c", 5, 0}},
		second: []call{{take, "c", 3, 4}, {take, "a", 9, 4}},
		third:  []call{{take, "a", 1, 4}},
	},
	{
		name: "RefuseNew, two slots", maxKeys: 2, overflow: tb.RefuseNew,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 3}},
		first:  []call{{take, "c", 2, 4}},
		second: []call{{take, "a", 1, 4}, {peek, "c", 3, 0}},
		third:  []call{{take, "b", 2, 4}},
	},
	{
		name: "RefuseNew, whose stamps change", maxKeys: 2, overflow: tb.RefuseNew,
		before: []call{{take, "a", 0, 1}, {take, "b", 0, 5}, {take, "a", 0, 9}},
		first:  []call{{take, "c", 0, 1}, {peek, "c", 0, 0}},
		second: []call{{take, "a", 20, 10}, {take, "b", 15, 5}},
	},
	{
		name: "RefuseNew and reset", maxKeys: 1, overflow: tb.RefuseNew, undone: true,
		before: []call{{take, "a", 0, 5}},
		first:  []call{{take, "b", 1, 4}, {peek, "c", 1, 0}},
		second: []call{{reset, "a", 0, 0}, {take, "a", 1, 4}},
	},
}
