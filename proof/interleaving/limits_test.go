package interleaving

// onLimits has scenarios in which the limit changes. An era ends, and each bucket moves.
var onLimits = []scenario{
	{
		name: "a faster rate", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, fast}, {take, "a", 3, 4}},
			{{take, "a", 2, 3}, {take, "a", 4, 3}},
		},
	},
	{
		name: "a slower rate", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, slow}, {peek, "a", 3, 0}},
			{{take, "a", 3, 3}, {take, "a", 4, 1}},
		},
	},
	{
		name: "a rate that is very much slower", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 1, nanos}, {setLimit, "", 1, hourly}, {take, "a", 2, 1}},
			{{take, "a", 2, 5}},
		},
	},
	{
		name: "a rate that is very much faster", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 5}},
		threads: [][]call{
			{{setLimit, "", 1, hourly}, {setLimit, "", 2, nanos}, {take, "a", 3, 3}},
			{{take, "a", 20, 3}},
		},
	},
	{
		name: "a move and a slower rate", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{take, "a", exhausted, 3}, {setLimit, "", 1, slow}},
			{{take, "a", 2, 5}},
		},
	},
	{
		name: "a move, a slower rate and a look", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "a", 0, 10}},
		threads: [][]call{
			{{take, "a", exhausted, 3}, {setLimit, "", 1, slow}},
			{{peek, "a", 3, 0}},
		},
	},
	{
		name: "a move of a Bucket, a slower rate and a look", oneBucket: true, undone: true, small: true,
		before: []call{{take, "a", 0, 10}},
		threads: [][]call{
			{{take, "a", exhausted, 3}, {setLimit, "", 1, slow}},
			{{peek, "a", 3, 0}},
		},
	},
	{
		name: "a slower rate and reservations", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, slow}, {reserve, "a", 2, 3}},
			{{reserve, "a", 1, 5}, {cancel, "a", 2, 0}},
		},
	},
	{
		name: "a faster rate and settlements", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}, {reserve, "a", 0, 5}},
		threads: [][]call{
			{{setLimit, "", 2, fast}},
			{{settle, "a", 3, 2}, {take, "a", 3, 2}},
		},
	},
	{
		name: "a larger capacity", maxKeys: 4, undone: true, medium: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, large}, {take, "a", 13, 11}},
			{{take, "a", 2, 3}, {take, "a", 4, 2}},
		},
	},
	{
		name: "a smaller capacity", maxKeys: 4, undone: true, medium: true,
		before: []call{{take, "a", 0, 2}},
		threads: [][]call{
			{{setLimit, "", 1, small}, {take, "a", 1, 4}},
			{{take, "a", 1, 3}, {peek, "a", 2, 0}},
		},
	},
	{
		name: "larger units", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, huge}, {take, "a", 3, 4}},
			{{take, "a", 2, 3}, {reserve, "a", 4, 9}},
		},
	},
	{
		name: "a larger capacity and reservations", maxKeys: 4, undone: true, moves: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, large}, {reserve, "a", 2, 3}},
			{{reserve, "a", 1, 5}, {cancel, "a", 2, 0}},
		},
	},
	{
		name: "a smaller capacity and reservations", maxKeys: 4, undone: true, moves: true,
		before: []call{{take, "a", 0, 9}, {reserve, "a", 0, 8}},
		threads: [][]call{
			{{setLimit, "", 2, small}, {take, "a", 8, 1}},
			{{cancel, "a", 2, 0}, {reserve, "a", 2, 3}},
		},
	},
	{
		name: "larger units and a settlement", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}, {reserve, "a", 0, 5}},
		threads: [][]call{
			{{setLimit, "", 2, huge}},
			{{settle, "a", 3, 120}, {peek, "a", 3, 0}},
		},
	},
	{
		name: "a larger capacity and settlements", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}, {reserve, "a", 0, 5}},
		threads: [][]call{
			{{setLimit, "", 2, large}, {reserve, "a", 2, 3}},
			{{settle, "a", 3, 2}, {take, "a", 3, 2}},
		},
	},
	{
		name: "another capacity and a new key", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "b", 0, 1}},
		threads: [][]call{
			{{setLimit, "", 1, small}, {take, "a", 1, 3}},
			{{take, "a", 1, 6}, {peek, "a", 2, 0}},
		},
	},
	{
		name: "another capacity and a move", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", exhausted, small}, {take, "a", exhausted, 3}},
			{{take, "a", exhausted, 6}},
		},
	},
	{
		name: "another capacity and a reading from the future", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 1}},
		threads: [][]call{
			{{setLimit, "", 1, large}, {take, "a", 2, 12}},
			{{take, "a", 600, 6}, {take, "a", 3, 5}},
		},
	},
	{
		name: "another capacity and a base in the future", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 1}, {take, "a", exhausted, 3}},
		threads: [][]call{
			{{setLimit, "", 1, large}, {take, "a", 2, 2}},
			{{take, "a", 3, 3}},
		},
	},
	{
		name: "two limits", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, large}, {take, "a", 13, 11}},
			{{setLimit, "", 1, slow}, {take, "a", 4, 3}},
		},
	},
	{
		name: "two limits and a grant between them", maxKeys: 4, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, large}, {take, "a", 2, 1}},
			{{setLimit, "", 1, fast}, {take, "a", 4, 3}},
		},
	},
	{
		name: "there and back", maxKeys: 4, undone: true, medium: true,
		before: []call{{take, "a", 0, 4}},
		threads: [][]call{
			{{setLimit, "", 2, small}, {setLimit, "", 2, 0}, {take, "a", 2, 4}},
			{{take, "a", 2, 1}},
		},
	},
	{
		name: "there and back, and a look", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 4}},
		threads: [][]call{
			{{setLimit, "", 2, small}, {setLimit, "", 2, 0}, {take, "a", 2, 4}},
			{{peek, "a", 2, 0}},
		},
	},
	{
		name: "a limit or an eviction", maxKeys: 1, undone: true,
		before: []call{{take, "a", 0, 5}},
		threads: [][]call{
			{{setLimit, "", 5, small}},
			{{take, "b", 5, 3}},
		},
	},
	{
		name: "a limit of one bucket", oneBucket: true, undone: true, small: true,
		before: []call{{take, "a", 0, 9}},
		threads: [][]call{
			{{setLimit, "", 2, large}, {take, "a", 3, 4}},
			{{take, "a", 2, 3}, {reserve, "a", 4, 9}},
		},
	},
}
