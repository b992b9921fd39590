package interleaving

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A TakeAll has a key for each letter. An exclamation mark at the end is a charge on a
// bucket of another kind, that somebody else empties between Check and Take.

// keys returns the keys that the call is about.
func (c ask) keys() []string {
	if c.op != all {
		return []string{c.key}
	}
	return strings.Split(strings.TrimSuffix(c.key, "!"), "")
}

// undoes says whether a TakeAll may have to undo charges although nobody else is there.
func (c ask) undoes() bool {
	if c.op != all {
		return false
	}
	keys := c.keys()
	slices.Sort(keys)
	return strings.HasSuffix(c.key, "!") || len(slices.Compact(keys)) < len(c.keys())
}

func (c ask) charges(l target) []tb.Charge {
	var charges []tb.Charge
	for _, k := range c.keys() {
		charge, err := l.Charge(k, float64(c.n))
		if err != nil {
			panic(err)
		}
		charges = append(charges, charge)
	}
	if strings.HasSuffix(c.key, "!") {
		charges = append(charges, emptied{})
	}
	return charges
}

// emptied is a charge on a bucket that is found empty in the end.
type emptied struct{}

func (emptied) Check(time.Time) (tb.Decision, error) { return tb.Decision{Allowed: true}, nil }
func (emptied) Take(time.Time) (tb.Decision, error) {
	return tb.Decision{RetryAfter: time.Second}, nil
}
func (emptied) Undo() {}

// onCharges are about several buckets, and about charges that are undone.
var onCharges = []scenario{
	{
		name: "all of two, in opposite order", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 6}, {take, "b", 0, 6}},
		threads: [][]ask{
			{{all, "ab", 0, 3}},
			{{all, "ba", 0, 3}},
		},
	},
	{
		name: "all of two, and each", maxKeys: 4,
		before: []ask{{take, "a", 0, 6}, {take, "b", 0, 6}},
		threads: [][]ask{
			{{all, "ab", 0, 3}},
			{{take, "a", 0, 2}, {take, "b", 0, 2}},
			{{take, "b", 0, 3}, {look, "a", 0, 0}},
		},
	},
	{
		name: "three in a ring", maxKeys: 4,
		before: []ask{{take, "a", 0, 6}, {take, "b", 0, 6}, {take, "c", 0, 6}},
		threads: [][]ask{
			{{all, "ab", 0, 3}},
			{{all, "bc", 0, 3}},
			{{all, "ca", 0, 3}},
		},
	},
	{
		name: "all of two, with late readings", maxKeys: 4,
		before: []ask{{take, "a", 0, 8}, {take, "b", 0, 8}},
		threads: [][]ask{
			{{all, "ab", 5, 4}, {take, "b", 3, 4}},
			{{all, "ba", 2, 3}, {take, "a", 5, 3}},
		},
	},
	{
		name: "refused by a bucket that is empty", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 2}, {take, "b", 0, 10}, {take, "c", 0, 2}},
		threads: [][]ask{
			{{all, "abc", 1, 2}, {all, "ba", 3, 2}},
			{{take, "a", 2, 7}, {take, "b", 2, 1}},
		},
	},
	{
		name: "twice of one", maxKeys: 4,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{all, "aa", 1, 3}},
			{{take, "a", 2, 4}},
			{{all, "aa", 1, 2}},
		},
	},
	{
		name: "undone while others take", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{all, "a!", 0, 4}},
			{{take, "a", 0, 5}, {take, "a", 0, 3}},
		},
	},
	{
		name: "two undone", maxKeys: 4,
		before: []ask{{take, "a", 0, 1}},
		threads: [][]ask{
			{{all, "a!", 3, 4}},
			{{all, "a!", 1, 5}},
			{{take, "a", 2, 1}, {take, "a", 3, 9}},
		},
	},
	{
		name: "undone when the bucket would have been full", maxKeys: 4, short: true,
		before: []ask{{take, "a", 0, 1}},
		threads: [][]ask{
			{{all, "a!", 5, 4}},
			{{take, "a", 8, 1}, {take, "a", 8, 10}, {take, "a", 8, 9}},
		},
	},
	{
		name: "undone after a later grant", maxKeys: 4,
		before: []ask{{take, "a", 0, 6}},
		threads: [][]ask{
			{{all, "a!", 1, 4}, {look, "a", 1, 0}},
			{{take, "a", 3, 2}, {take, "a", 1, 5}},
		},
	},
	{
		name: "undone or evicted", maxKeys: 1, short: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{all, "a!", 1, 4}},
			{{take, "b", 1, 3}, {take, "a", 1, 6}, {take, "a", 1, 5}},
		},
	},
	{
		name: "undone, evicted and taken", maxKeys: 1, undone: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{all, "a!", 1, 4}},
			{{take, "b", 1, 3}},
			{{take, "a", 1, 6}},
		},
	},
	{
		name: "undone, and a new key", maxKeys: 1, undone: true,
		before: []ask{{take, "b", 0, 2}},
		threads: [][]ask{
			{{all, "a!", 3, 4}},
			{{take, "b", 4, 7}, {take, "a", 2, 7}},
		},
	},
	{
		name: "all of two that are new", maxKeys: 4, undone: true,
		before: []ask{{take, "c", 0, 1}},
		threads: [][]ask{
			{{all, "ab", 0, 6}},
			{{all, "ba", 0, 6}},
		},
	},
	{
		name: "all of two, and one place", maxKeys: 1,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{all, "ab", 5, 4}},
			{{take, "b", 5, 4}, {take, "a", 5, 4}},
		},
	},
	{
		name: "RefuseNew, all of two", maxKeys: 1, overflow: tb.RefuseNew, undone: true,
		before: []ask{{take, "a", 0, 2}},
		threads: [][]ask{
			{{all, "ba", 5, 4}},
			{{take, "a", 6, 4}, {take, "b", 5, 4}},
		},
	},
	{
		name: "undone or reset", maxKeys: 2, undone: true,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{all, "a!", 5, 4}},
			{{wipe, "a", 0, 0}, {take, "a", 5, 8}, {take, "a", 5, 3}},
		},
	},
	{
		name: "reset after a look", maxKeys: 4,
		before: []ask{{take, "a", 0, 4}, {take, "b", 0, 10}},
		threads: [][]ask{
			{{wipe, "a", 0, 0}, {wipe, "b", 0, 0}},
			{{all, "ab", 0, 2}},
		},
	},
	{
		name: "undone or moved", maxKeys: 2, moves: true, short: true,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{all, "a!", 274_877, 4}},
			{{take, "a", 274_878, 3}, {take, "a", 274_878, 7}},
		},
	},
	{
		name: "undone, moved and taken", maxKeys: 2, moves: true,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{all, "a!", 274_877, 4}},
			{{take, "a", 274_878, 6}},
			{{take, "a", 274_877, 5}},
		},
	},
	{
		name: "undone after it has moved", maxKeys: 2,
		before: []ask{{take, "a", 0, 9}},
		threads: [][]ask{
			{{all, "a!", lapse, 4}},
			{{take, "a", lapse + 1, 3}, {take, "a", lapse - 1, 7}},
		},
	},
	{
		name: "all of two that move", maxKeys: 2,
		before: []ask{{take, "a", 0, 9}, {take, "b", 0, 9}},
		threads: [][]ask{
			{{all, "ab", lapse, 6}},
			{{all, "ba", lapse + 1, 6}},
		},
	},
}
