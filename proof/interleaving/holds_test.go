package interleaving

import "github.com/seed-181794aa/ratelimit/tb"

// onHolds has scenarios in which keys are held, and charges keep tokens.
var onHolds = []scenario{
	{
		name: "a hold", maxKeys: 4,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{hold, "a", 1, 5}, {peek, "a", 2, 0}, {take, "a", 7, 1}},
		second: []call{{take, "a", 1, 2}, {take, "a", 3, 1}},
	},
	{
		name: "two holds", maxKeys: 4,
		before: []call{{take, "a", 0, 1}},
		first:  []call{{hold, "a", 0, 3}, {take, "a", 4, 1}},
		second: []call{{hold, "a", 1, 5}, {take, "a", 4, 1}},
	},
	{
		name: "a hold that ends, and a late call", maxKeys: 4, medium: true,
		before: []call{{take, "a", 0, 1}, {hold, "a", 0, 3}},
		first:  []call{{take, "a", 5, 1}, {take, "a", 2, 1}},
		second: []call{{hold, "a", 1, 3}},
	},
	{
		name: "reservations behind a hold", maxKeys: 4, moves: true,
		before: []call{{take, "a", 0, 10}, {hold, "a", 0, 4}},
		first:  []call{{reserve, "a", 0, 3}, {cancel, "a", 1, 0}},
		second: []call{{reserve, "a", 1, 2}, {hold, "a", 1, 1}},
	},
	{
		name: "a hold and reservations", maxKeys: 4, moves: true,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 5}},
		first:  []call{{hold, "a", 0, 2}, {reserve, "a", 0, 2}},
		second: []call{{cancel, "a", 1, 0}, {take, "a", 3, 1}},
	},
	{
		name: "a hold and a settlement", maxKeys: 4,
		before: []call{{take, "a", 0, 5}, {reserve, "a", 0, 5}},
		first:  []call{{hold, "a", 0, 4}, {take, "a", 4, 1}},
		second: []call{{settle, "a", 0, 1}, {take, "a", 5, 1}},
	},
	{
		name: "a settlement behind a hold", maxKeys: 4,
		before: []call{{take, "a", 0, 5}, {reserve, "a", 0, 5}, {hold, "a", 0, 4}},
		first:  []call{{settle, "a", 0, 9}, {peek, "a", 1, 0}},
		second: []call{{reserve, "a", 1, 3}, {hold, "a", 2, 3}},
	},
	{
		name: "a hold and a faster rate", maxKeys: 4, undone: true, medium: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{setLimit, "", 2, fast}, {take, "a", 3, 1}},
		second: []call{{hold, "a", 1, 5}, {take, "a", 6, 1}},
	},
	{
		name: "a longer hold, a faster rate and a look", maxKeys: 4, undone: true, small: true,
		before: []call{{hold, "a", 0, 4}},
		first:  []call{{hold, "a", 1, 6}, {setLimit, "", 2, fast}},
		second: []call{{peek, "a", 3, 0}},
	},
	{
		name: "a reservation behind a hold and a slower rate", maxKeys: 4, undone: true, moves: true,
		before: []call{{take, "a", 0, 9}, {hold, "a", 0, 5}},
		first:  []call{{setLimit, "", 1, slow}, {reserve, "a", 1, 1}},
		second: []call{{reserve, "a", 0, 2}, {cancel, "a", 2, 0}},
	},
	{
		name: "a hold that ends, and a larger capacity", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}, {hold, "a", 0, 3}},
		first:  []call{{setLimit, "", 4, large}, {take, "a", 5, 2}},
		second: []call{{take, "a", 3, 1}, {hold, "a", 2, 2}},
	},
	{
		name: "a hold of one bucket", oneBucket: true, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{setLimit, "", 2, large}, {take, "a", 6, 1}},
		second: []call{{hold, "a", 1, 4}, {peek, "a", 3, 0}},
	},
	{
		name: "a hold and an eviction", maxKeys: 1,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{hold, "a", 0, 2}, {take, "a", 1, 3}},
		second: []call{{take, "b", 1, 4}},
	},
	{
		name: "a hold of a new key", maxKeys: 1, overflow: tb.RefuseNew,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{hold, "b", 3, 2}, {take, "b", 6, 1}},
		second: []call{{take, "a", 2, 5}},
	},
	{
		name: "a hold and another tier", maxKeys: 4, wide: true, undone: true, tiers: []int{0, huge},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{hold, "a", 1, 4}, {takeIn, "a0", 6, 1}},
		second: []call{{takeIn, "a1", 2, 5}, {takeIn, "a1", 6, 2}},
	},
	{
		name: "kept tokens, late readings and another tier", maxKeys: 4, undone: true, medium: true,
		tiers:  []int{0, large},
		before: []call{{takeIn, "a0", 2, 3}},
		first:  []call{{keepIn, "a0", 1, 2}, {keepIn, "a1", 4, 3}},
		second: []call{{takeIn, "a1", 3, 3}, {keepIn, "a0", 3, 2}},
	},
	{
		name: "kept tokens and a smaller capacity", maxKeys: 4, undone: true, small: true,
		tiers:  []int{0},
		before: []call{{takeIn, "a0", 0, 3}},
		first:  []call{{setTier, "0", 1, small}, {keepIn, "a0", 2, 1}},
		second: []call{{keepIn, "a0", 1, 2}, {takeIn, "a0", 1, 3}},
	},
}
