package interleaving

// onReservations has scenarios in which tokens are reserved, given back and settled. A bucket is in
// debt until the slot of its latest reservation.
var onReservations = []scenario{
	{
		name: "two reservations", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{reserve, "a", 0, 4}, {take, "a", 4, 3}},
		second: []call{{reserve, "a", 1, 3}, {peek, "a", 1, 0}},
	},
	{
		name: "three reservations and the most debt", maxKeys: 4,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{reserve, "a", 0, 6}},
		second: []call{{reserve, "a", 1, 4}},
		third:  []call{{reserve, "a", 0, 5}, {take, "a", 9, 3}},
	},
	{
		name: "a reservation is cancelled", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{reserve, "a", 0, 4}, {cancel, "a", 1, 0}},
		second: []call{{take, "a", 2, 3}, {take, "a", 0, 1}},
	},
	{
		name: "two reservations are cancelled", maxKeys: 4,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{reserve, "a", 0, 4}, {cancel, "a", 1, 0}, {take, "a", 2, 3}},
		second: []call{{reserve, "a", 1, 3}, {cancel, "a", 2, 0}},
	},
	{
		name: "a reservation moves its bucket and is cancelled", maxKeys: 4,
		before: []call{{take, "a", 0, 9}, {take, "a", 274_876, 7}},
		first:  []call{{reserve, "a", 274_876, 5}, {cancel, "a", 274_876, 0}, {take, "a", 274_876, 2}},
		second: []call{{peek, "a", 274_876, 0}, {take, "a", 274_876, 2}},
	},
	{
		name: "an earlier reservation is cancelled", maxKeys: 4,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 4}},
		first:  []call{{cancel, "a", 1, 0}, {take, "a", 2, 2}},
		second: []call{{reserve, "a", 1, 3}, {reserve, "a", 1, 2}},
	},
	{
		name: "one reservation is cancelled twice", maxKeys: 4, shared: true, small: true,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 4}},
		first:  []call{{cancel, "a", 1, 0}},
		second: []call{{cancel, "a", 1, 0}, {take, "a", 2, 3}},
	},
	{
		name: "cancelled or settled", maxKeys: 4, shared: true,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 4}},
		first:  []call{{cancel, "a", 1, 0}, {take, "a", 1, 1}},
		second: []call{{settle, "a", 1, 1}, {take, "a", 2, 3}},
	},
	{
		name: "cancelled at its slot and after it", maxKeys: 4,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 4}},
		first:  []call{{cancel, "a", 2, 0}, {take, "a", 2, 3}},
		second: []call{{take, "a", 3, 1}, {reserve, "a", 2, 2}, {cancel, "a", 4, 0}},
	},
	{
		name: "cancelled without debt", maxKeys: 4,
		before: []call{{take, "a", 0, 1}},
		first:  []call{{reserve, "a", 3, 4}, {cancel, "a", 3, 0}},
		second: []call{{take, "a", 3, 2}, {reserve, "a", 3, 9}, {take, "a", 5, 1}},
	},
	{
		name: "cancelled or evicted", maxKeys: 1, undone: true,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 4}},
		first:  []call{{cancel, "a", 1, 0}, {take, "a", 1, 10}},
		second: []call{{take, "b", 1, 3}, {reserve, "b", 1, 9}},
	},
	{
		name: "cancelled or reset", maxKeys: 2, moves: true, undone: true, small: true,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 4}},
		first:  []call{{cancel, "a", 1, 0}, {take, "a", 1, 9}},
		second: []call{{reset, "a", 0, 0}, {reserve, "a", 1, 5}},
	},
	{
		name: "cancelled or moved", maxKeys: 2, moves: true, undone: true,
		before: []call{{take, "a", 0, 10}, {take, "a", 274_875, 9}},
		first:  []call{{reserve, "a", 274_875, 2}, {cancel, "a", 274_875, 0}},
		second: []call{{reserve, "a", 274_876, 4}, {take, "a", 274_884, 3}},
	},
	{
		name: "cancelled or moved, and taken", maxKeys: 2, moves: true, undone: true,
		before: []call{{take, "a", 0, 10}, {take, "a", 274_875, 5}},
		first:  []call{{reserve, "a", 274_875, 2}, {cancel, "a", 274_875, 0}, {take, "a", 274_875, 5}},
		second: []call{{take, "a", 274_879, 4}},
	},
	{
		name: "cancelled after it has moved", maxKeys: 2, moves: true, undone: true,
		before: []call{{take, "a", 0, 10}, {take, "a", 274_875, 10}},
		first:  []call{{reserve, "a", 274_876, 4}, {cancel, "a", 274_876, 0}, {take, "a", 274_878, 1}},
		second: []call{{take, "a", 274_879, 1}},
	},
	{
		name: "charges that may wait", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 8}, {take, "b", 0, 7}},
		first:  []call{{takeAll, "ab~", 0, 4}, {take, "a", 4, 1}},
		second: []call{{takeAll, "ba~", 1, 3}, {peek, "b", 1, 0}},
	},
	{
		name: "a charge that may wait is undone", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{takeAll, "a!~", 0, 4}, {take, "a", 2, 3}},
		second: []call{{reserve, "a", 1, 3}, {cancel, "a", 1, 0}, {take, "a", 3, 2}},
	},
	{
		name: "reservations of a new key", maxKeys: 4, small: true,
		before: []call{{take, "b", 0, 1}},
		first:  []call{{reserve, "a", 1, 7}, {cancel, "a", 1, 0}},
		second: []call{{reserve, "a", 2, 7}},
	},
	{
		name: "reservations that move", maxKeys: 2, moves: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{reserve, "a", exhausted, 7}, {reserve, "a", exhausted, 4}},
		second: []call{{reserve, "a", exhausted + 1, 6}, {cancel, "a", exhausted + 1, 0}},
	},
	{
		name: "late reservations after a move", maxKeys: 2, moves: true,
		before: []call{{reserve, "a", 0, 9}},
		first:  []call{{settle, "a", exhausted, 1}, {reserve, "a", exhausted, 9}},
		second: []call{{reserve, "a", exhausted + 9, 10}, {reserve, "a", exhausted + 9, 4}},
	},
	{
		name: "reservations on one bucket", oneBucket: true,
		first:  []call{{reserve, "a", 1, 8}, {cancel, "a", 1, 0}},
		second: []call{{reserve, "a", 2, 7}, {settle, "a", 3, 9}},
	},
}

// onSettlements has scenarios in which the actual cost differs from the cost that was reserved.
var onSettlements = []scenario{
	{
		name: "settled for less", maxKeys: 4, small: true,
		before: []call{{reserve, "a", 0, 8}},
		first:  []call{{settle, "a", 1, 3}, {take, "a", 1, 2}},
		second: []call{{take, "a", 2, 3}, {take, "a", 1, 5}},
	},
	{
		name: "settled for less while in debt", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 8}, {reserve, "a", 0, 6}},
		first:  []call{{settle, "a", 1, 1}, {peek, "a", 1, 0}},
		second: []call{{reserve, "a", 1, 2}, {take, "a", 3, 3}},
	},
	{
		name: "settled for more", maxKeys: 4, small: true,
		before: []call{{reserve, "a", 0, 4}},
		first:  []call{{settle, "a", 1, 9}, {take, "a", 2, 2}},
		second: []call{{take, "a", 1, 5}, {reserve, "a", 2, 4}},
	},
	{
		name: "settled for more than can be charged", maxKeys: 4,
		before: []call{{reserve, "a", 0, 4}},
		first:  []call{{settle, "a", 1, 40}, {take, "a", 2, 2}},
		second: []call{{take, "a", 1, 5}, {reserve, "a", 2, 3}},
	},
	{
		name: "two settlements", maxKeys: 4,
		before: []call{{take, "a", 0, 5}},
		first:  []call{{reserve, "a", 0, 7}, {settle, "a", 1, 2}},
		second: []call{{reserve, "a", 0, 4}, {settle, "a", 1, 6}, {take, "a", 2, 1}},
	},
	{
		name: "settled or cancelled, two reservations", maxKeys: 4,
		before: []call{{take, "a", 0, 8}},
		first:  []call{{reserve, "a", 0, 4}, {cancel, "a", 1, 0}},
		second: []call{{reserve, "a", 0, 4}, {settle, "a", 1, 1}, {take, "a", 2, 1}},
	},
	{
		name: "settled or evicted", maxKeys: 1, undone: true,
		before: []call{{reserve, "a", 0, 8}},
		first:  []call{{settle, "a", 1, 3}, {take, "a", 1, 7}},
		second: []call{{take, "b", 1, 3}},
	},
	{
		name: "settled for more or evicted", maxKeys: 2, undone: true,
		before: []call{{reserve, "a", 0, 8}, {take, "b", 0, 9}},
		first:  []call{{settle, "a", 1, 12}, {take, "a", 1, 7}},
		second: []call{{reset, "a", 1, 0}},
	},
	{
		name: "settled or reset", maxKeys: 2, undone: true,
		before: []call{{reserve, "a", 0, 8}},
		first:  []call{{settle, "a", 1, 3}, {take, "a", 1, 7}},
		second: []call{{reset, "a", 0, 0}, {take, "a", 1, 6}},
	},
	{
		name: "settled or moved", maxKeys: 2, medium: true,
		before: []call{{reserve, "a", 0, 9}},
		first:  []call{{settle, "a", exhausted, 5}, {take, "a", exhausted, 3}},
		second: []call{{take, "a", exhausted, 7}, {reserve, "a", exhausted, 8}},
	},
	{
		name: "settled for less or moved", maxKeys: 2,
		before: []call{{take, "a", 0, 10}, {reserve, "a", 274_875, 9}},
		first:  []call{{settle, "a", 274_877, 4}, {take, "a", 274_877, 1}},
		second: []call{{take, "a", 274_877, 3}},
	},
	{
		name: "settled after it has moved", maxKeys: 2,
		before: []call{{take, "a", 0, 9}, {reserve, "a", 274_875, 9}},
		first:  []call{{settle, "a", 274_877, 12}, {take, "a", 274_877, 1}},
		second: []call{{reserve, "a", 274_877, 9}, {settle, "a", 274_877, 2}},
	},
}
