package interleaving

// onOneKey has scenarios with one bucket, which is in the table or is a cas.Bucket.
var onOneKey = []scenario{
	{
		name: "takes", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "a", 1, 4}, {take, "a", 3, 4}},
		second: []call{{take, "a", 2, 3}, {takeOne, "a", 2, 1}},
	},
	{
		name: "three takers", maxKeys: 4,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "a", 1, 4}, {take, "a", 3, 4}},
		second: []call{{take, "a", 2, 3}, {takeOne, "a", 4, 1}},
		third:  []call{{take, "a", 0, 5}, {take, "a", 5, 2}},
	},
	{
		name: "three calls of two", maxKeys: 4,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "a", 1, 4}, {take, "a", 3, 4}, {peek, "a", 3, 0}},
		second: []call{{take, "a", 9, 9}, {take, "a", 2, 3}, {take, "a", 9, 4}},
	},
	{
		name: "refusals and a grant", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "a", 1, 4}, {take, "a", 3, 4}},
		second: []call{{take, "a", 0, 3}, {peek, "a", 2, 0}},
		third:  []call{{take, "a", 3, 3}},
	},
	{
		name: "the first reading of the clock", maxKeys: 2,
		first:  []call{{take, "a", 7, 4}},
		second: []call{{take, "a", 5, 4}},
		third:  []call{{takeOne, "b", 6, 1}},
	},
	{
		name: "the delta runs out", maxKeys: 2, small: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "a", exhausted, 4}, {take, "a", exhausted + 2, 4}},
		second: []call{{take, "a", exhausted - 1, 7}, {peek, "a", exhausted + 1, 0}},
	},
	{
		name: "three movers", maxKeys: 2, wide: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "a", exhausted, 4}, {peek, "a", exhausted, 0}},
		second: []call{{take, "a", exhausted - 1, 7}},
		third:  []call{{take, "a", 5, 3}},
	},
	{
		name: "the last grant that fits", maxKeys: 2, wide: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "a", 274_876, 4}, {take, "a", 274_876, 4}},
		second: []call{{take, "a", 274_877, 3}},
		third:  []call{{take, "a", 274_875, 11}, {peek, "a", 274_877, 0}},
	},
	{
		name: "one bucket", oneBucket: true, medium: true,
		first:  []call{{take, "a", 5, 4}, {take, "a", 4, 4}},
		second: []call{{take, "a", 1, 4}, {takeOne, "a", 1, 0}},
		third:  []call{{peek, "a", 1, 0}},
	},
	{
		name: "one bucket moves", oneBucket: true, medium: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{take, "a", exhausted, 4}, {take, "a", 4, 4}},
		second: []call{{take, "a", exhausted + 1, 7}, {peek, "a", exhausted, 0}},
		third:  []call{{take, "a", exhausted + 2, 3}},
	},
}
