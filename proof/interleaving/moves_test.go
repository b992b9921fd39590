package interleaving

import "github.com/seed-181794aa/ratelimit/tb"

// onTheMove has scenarios in which keys are moved from one small map to another, in variants
// with tiny maps, and scenarios with keys that have the same hash.
var onTheMove = []scenario{
	{
		name: "hits while keys are moved", maxKeys: 4, small: true, deep: true,
		before: []call{{take, "a", 0, 2}, {take, "c", 0, 9}},
		first:  []call{{take, "b", 1, 4}},
		second: []call{{take, "a", 1, 4}, {take, "c", 1, 4}},
	},
	{
		name: "looks while keys are moved", maxKeys: 4, deep: true,
		before: []call{{take, "a", 0, 2}, {take, "c", 0, 9}},
		first:  []call{{take, "b", 1, 4}, {take, "d", 1, 4}},
		second: []call{{peek, "a", 1, 0}, {peek, "c", 1, 0}, {peek, "b", 1, 0}},
	},
	{
		name: "charges while keys are moved", maxKeys: 4,
		before: []call{{take, "a", 0, 2}, {take, "c", 0, 5}},
		first:  []call{{take, "b", 1, 4}},
		second: []call{{takeAll, "ac", 1, 4}, {takeAll, "ca", 1, 3}},
	},
	{
		name: "a new key while keys are moved", maxKeys: 4,
		before: []call{{take, "a", 0, 2}, {take, "c", 0, 9}},
		first:  []call{{take, "b", 1, 4}, {take, "d", 1, 4}},
		second: []call{{take, "d", 1, 7}, {take, "b", 1, 7}},
	},
	{
		name: "a successor while keys are moved", maxKeys: 4, small: true, deep: true,
		before: []call{{take, "a", 0, 2}, {take, "c", 0, 9}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{take, "c", exhausted, 4}, {take, "c", exhausted, 4}},
	},
	{
		name: "two successors while keys are moved", maxKeys: 4,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{take, "a", exhausted, 9}, {take, "a", 2 * exhausted, 9}},
	},
	{
		name: "three at a successor while keys are moved", maxKeys: 4,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{take, "a", exhausted, 6}},
		third:  []call{{take, "a", exhausted, 5}, {peek, "a", exhausted, 0}},
	},
	{
		name: "idle keys make a map smaller", maxKeys: 4, deep: true,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 4}, {take, "c", 99, 9}},
		first:  []call{{take, "d", 100, 4}, {take, "b", 200, 4}},
		second: []call{{take, "c", 100, 1}, {take, "c", 101, 4}, {peek, "c", 101, 0}},
	},
	{
		name: "reset of a successor", maxKeys: 2, undone: true,
		before: []call{{take, "b", 0, 9}, {take, "a", 0, 9}, {take, "a", exhausted, 4}},
		first:  []call{{reset, "a", 0, 0}, {take, "a", exhausted, 5}},
		second: []call{{take, "c", exhausted, 10}, {take, "a", exhausted, 3}},
	},
	{
		name: "eviction of a successor", maxKeys: 2,
		before: []call{{take, "b", 0, 9}, {take, "a", 0, 9}, {take, "a", exhausted, 4}},
		first:  []call{{take, "c", exhausted, 10}, {take, "d", exhausted, 10}},
		second: []call{{take, "a", exhausted, 5}, {take, "b", 2, 1}},
	},
	{
		name: "a successor with the same word", maxKeys: 2,
		before: []call{{take, "a", 0, 4}, {take, "c", 0, 9}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{take, "a", exhausted, 4}},
	},
	{
		name: "a forgiven debt and a late reading", maxKeys: 1,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{take, "c", 1, 10}, {take, "c", 5, 3}},
	},
	{
		name: "no debt is forgiven while a bucket is full", maxKeys: 3, full: true, small: true,
		before: []call{
			{take, "b", 0, 1}, {take, "c", 0, 1}, {take, "a", 0, 3},
			{take, "b", 5, 9}, {take, "c", 5, 9},
		},
		first:  []call{{take, "d", 6, 4}},
		second: []call{{take, "b", 6, 1}, {take, "c", 6, 2}},
	},
	{
		name: "looks at an exchange", maxKeys: 1, small: true, deep: true,
		before: []call{{take, "a", 0, 4}},
		first:  []call{{take, "b", 5, 4}},
		second: []call{{peek, "a", 1, 0}, {peek, "b", 5, 0}, {peek, "a", 1, 0}},
	},
	{
		name: "RefuseNew, looks at an exchange", maxKeys: 1, overflow: tb.RefuseNew, deep: true,
		before: []call{{take, "a", 0, 4}},
		first:  []call{{take, "b", 5, 4}, {take, "b", 5, 4}},
		second: []call{{peek, "a", 1, 0}, {peek, "b", 1, 0}, {peek, "c", 1, 0}},
	},
	{
		name: "RefuseNew, looks while idle keys make room", maxKeys: 2, overflow: tb.RefuseNew,
		deep: true, before: []call{{take, "a", 0, 1}, {take, "b", 0, 1}},
		first:  []call{{take, "c", 100, 4}},
		second: []call{{peek, "d", 100, 0}, {peek, "a", 100, 0}},
	},
	{
		name: "RefuseNew, looks at a reset", maxKeys: 1, overflow: tb.RefuseNew, deep: true, undone: true,
		before: []call{{take, "a", 0, 4}},
		first:  []call{{reset, "a", 0, 0}},
		second: []call{{peek, "a", 1, 0}, {peek, "b", 1, 0}},
	},
	{
		name: "a cost above the capacity", maxKeys: 4, small: true, deep: true,
		before: []call{{take, "a", 0, 4}},
		first:  []call{{take, "b", 1, 4}},
		second: []call{{take, "b", 1, capacity + 1}, {takeAll, "ab", 1, capacity + 1}, {peek, "c", 1, 0}},
	},
	{
		name: "the same hash", maxKeys: 2, collide: true, medium: true, deep: true,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 9}},
		first:  []call{{take, "c", 3, 9}},
		second: []call{{take, "b", 3, 3}, {take, "a", 3, 5}},
	},
	{
		name: "the same hash, of new keys", maxKeys: 4, collide: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{take, "b", 1, 9}, {peek, "c", 1, 0}},
		second: []call{{take, "c", 1, 9}, {take, "b", 1, 3}},
	},
	{
		name: "the same hash, and a reset", maxKeys: 3, collide: true, deep: true, undone: true,
		before: []call{{take, "a", 0, 9}, {take, "b", 0, 9}},
		first:  []call{{reset, "a", 0, 0}, {take, "a", 1, 5}},
		second: []call{{take, "b", 1, 2}, {peek, "b", 1, 0}},
	},
	{
		name: "the same hash, and successors", maxKeys: 2, collide: true,
		before: []call{{take, "a", 0, 9}, {take, "b", 0, 9}},
		first:  []call{{take, "b", exhausted, 9}},
		second: []call{{take, "c", exhausted, 9}, {take, "a", exhausted, 9}},
	},
}
