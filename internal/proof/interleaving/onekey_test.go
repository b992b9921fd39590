package interleaving

// onOneKey are about a bucket that is there, or the only one.
var onOneKey = []scenario{
	{
		name: "takes", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "a", 1, 4}, {take, "a", 3, 4}},
			{{take, "a", 2, 3}, {one, "a", 2, 1}},
		},
	},
	{
		name: "three takers", maxKeys: 4,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "a", 1, 4}, {take, "a", 3, 4}},
			{{take, "a", 2, 3}, {one, "a", 4, 1}},
			{{take, "a", 0, 5}, {take, "a", 5, 2}},
		},
	},
	{
		name: "three calls of two", maxKeys: 4,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "a", 1, 4}, {take, "a", 3, 4}, {look, "a", 3, 0}},
			{{take, "a", 9, 9}, {take, "a", 2, 3}, {take, "a", 9, 4}},
		},
	},
	{
		name: "refusals and a grant", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{take, "a", 1, 4}, {take, "a", 3, 4}},
			{{take, "a", 0, 3}, {look, "a", 2, 0}},
			{{take, "a", 3, 3}},
		},
	},
	{
		name: "the first reading of the clock", maxKeys: 2,
		threads: [][]ask{
			{{take, "a", 7, 4}},
			{{take, "a", 5, 4}},
			{{one, "b", 6, 1}},
		},
	},
	{
		name: "the delta runs out", maxKeys: 2, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "a", lapse, 4}, {take, "a", lapse + 2, 4}},
			{{take, "a", lapse - 1, 7}, {look, "a", lapse + 1, 0}},
		},
	},
	{
		name: "three movers", maxKeys: 2,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{take, "a", lapse, 4}, {look, "a", lapse, 0}},
			{{take, "a", lapse - 1, 7}},
			{{take, "a", 5, 3}},
		},
	},
	{
		name: "the last grant that fits", maxKeys: 2,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{take, "a", 274_877, 4}, {take, "a", 274_877, 4}},
			{{take, "a", 274_878, 3}},
			{{take, "a", 274_876, 11}, {look, "a", 274_878, 0}},
		},
	},
	{
		name: "one bucket", oneBucket: true, short: true,
		threads: [][]ask{
			{{take, "a", 5, 4}, {take, "a", 4, 4}},
			{{take, "a", 1, 4}, {one, "a", 1, 0}},
			{{look, "a", 1, 0}},
		},
	},
	{
		name: "one bucket moves", oneBucket: true, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{take, "a", lapse, 4}, {take, "a", 4, 4}},
			{{take, "a", lapse + 1, 7}, {look, "a", lapse, 0}},
			{{take, "a", lapse + 2, 3}},
		},
	},
}
