package interleaving

// onTiers has scenarios in which keys change their tiers, and tiers their limits. Calls name the
// tiers. The cell of a key that changes its tier moves, also if the call is refused.
var onTiers = []scenario{
	{
		name: "two tiers", maxKeys: 4, undone: true, medium: true, tiers: []int{0, large},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{takeIn, "a1", 2, 2}, {takeIn, "a1", 3, 2}},
		second: []call{{takeIn, "a0", 1, 1}, {checkIn, "a0", 4, 2}},
	},
	{
		name: "a refusal changes the tier", maxKeys: 4, undone: true, tiers: []int{0, huge},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{takeIn, "a1", 2, 20}, {checkIn, "a1", 3, 4}},
		second: []call{{take, "a", 1, 2}, {takeIn, "a0", 2, 1}},
	},
	{
		name: "a look at a key of another tier, which is taken", maxKeys: 4, undone: true, small: true,
		tiers:  []int{0, large},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{takeIn, "a0", 1, 1}, {setTier, "0", 1, slow}},
		second: []call{{checkIn, "a1", 8, 2}},
	},
	{
		name: "another tier of another rate", maxKeys: 4, undone: true, tiers: []int{0, large},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{setTier, "0", 1, fast}, {takeIn, "a0", 3, 2}},
		second: []call{{takeIn, "a1", 2, 2}, {checkIn, "a1", 4, 1}},
	},
	{
		name: "the new tier of a key changes", maxKeys: 4, undone: true, tiers: []int{0, small},
		before: []call{{takeIn, "a0", 0, 5}},
		first:  []call{{setTier, "1", 1, large}, {takeIn, "a1", 2, 3}},
		second: []call{{takeIn, "a1", 1, 4}, {checkIn, "a0", 2, 1}},
	},
	{
		name: "both tiers of a key change", maxKeys: 4, undone: true, tiers: []int{0, small},
		before: []call{{takeIn, "a0", 0, 5}},
		first:  []call{{setTier, "0", 1, large}, {setTier, "1", 2, fast}},
		second: []call{{takeIn, "a1", 2, 3}},
	},
	{
		name: "a reservation and another tier", maxKeys: 4, undone: true, moves: true,
		tiers:  []int{0, large},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{reserve, "a", 1, 5}, {cancel, "a", 2, 0}},
		second: []call{{takeIn, "a1", 2, 1}, {setTier, "1", 2, slow}},
	},
	{
		name: "a settlement and another tier", maxKeys: 4, undone: true, tiers: []int{0, large},
		before: []call{{takeIn, "a0", 0, 4}, {reserve, "a", 0, 5}},
		first:  []call{{settle, "a", 3, 2}},
		second: []call{{takeIn, "a1", 2, 1}, {setTier, "1", 3, huge}},
	},
	{
		name: "a reset and another tier", maxKeys: 4, undone: true, tiers: []int{0, small},
		before: []call{{takeIn, "a0", 0, 9}},
		first:  []call{{reset, "a", 0, 0}, {takeIn, "a1", 1, 3}},
		second: []call{{takeIn, "a0", 1, 1}, {takeIn, "a1", 2, 2}},
	},
}
