package interleaving

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The key of a TakeAll stands for several keys, one for each letter. An exclamation mark after them
// adds a charge of type refusedAtTake. After a tilde at the end, the charges may wait.

// keys returns the keys of the call.
func (c call) keys() []string {
	switch c.op {
	case setLimit, setTier:
		return nil
	case takeIn, checkIn:
		return []string{c.key[:1]}
	case takeAll:
	default:
		return []string{c.key}
	}
	return strings.Split(strings.TrimRight(c.key, "!~"), "")
}

// undoes reports whether a TakeAll may have to undo charges even if no other thread runs.
func (c call) undoes() bool {
	if c.op != takeAll {
		return false
	}
	keys := c.keys()
	slices.Sort(keys)
	return strings.Contains(c.key, "!") || len(slices.Compact(keys)) < len(c.keys())
}

func (c call) charges(l registry.Caller) []tb.Charge {
	var charges []tb.Charge
	for _, k := range c.keys() {
		charge, err := l.Charge(k, float64(c.n))
		if err != nil {
			panic(err)
		}
		if strings.HasSuffix(c.key, "~") {
			charge.(waiter).MayWait(tb.Never)
		}
		charges = append(charges, charge)
	}
	if strings.Contains(c.key, "!") {
		charges = append(charges, refusedAtTake{})
	}
	return charges
}

// waiter is a charge that may put its bucket into debt.
type waiter interface {
	MayWait(within time.Duration)
	Delay() time.Duration
}

// refusedAtTake is a charge on a bucket that is emptied between Peek and Take.
type refusedAtTake struct{}

func (refusedAtTake) Peek(time.Time) (tb.Decision, error) {
	return tb.Decision{Allowed: true}, nil
}

func (refusedAtTake) Take(time.Time) (tb.Decision, error) {
	return tb.Decision{RetryAfter: time.Second}, nil
}

func (refusedAtTake) Cancel() {}

// onCharges has scenarios with several buckets, and with charges that are undone.
var onCharges = []scenario{
	{
		name: "all of two, in opposite order", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 6}, {take, "b", 0, 6}},
		first:  []call{{takeAll, "ab", 0, 3}},
		second: []call{{takeAll, "ba", 0, 3}},
	},
	{
		name: "all of two, and each", maxKeys: 4,
		before: []call{{take, "a", 0, 6}, {take, "b", 0, 6}},
		first:  []call{{takeAll, "ab", 0, 3}},
		second: []call{{take, "a", 0, 2}, {take, "b", 0, 2}},
		third:  []call{{take, "b", 0, 3}, {peek, "a", 0, 0}},
	},
	{
		name: "three in a ring", maxKeys: 4,
		before: []call{{take, "a", 0, 6}, {take, "b", 0, 6}, {take, "c", 0, 6}},
		first:  []call{{takeAll, "ab", 0, 3}},
		second: []call{{takeAll, "bc", 0, 3}},
		third:  []call{{takeAll, "ca", 0, 3}},
	},
	{
		name: "all of two, with late readings", maxKeys: 4,
		before: []call{{take, "a", 0, 8}, {take, "b", 0, 8}},
		first:  []call{{takeAll, "ab", 5, 4}, {take, "b", 3, 4}},
		second: []call{{takeAll, "ba", 2, 3}, {take, "a", 5, 3}},
	},
	{
		name: "refused by a bucket that is empty", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 2}, {take, "b", 0, 10}, {take, "c", 0, 2}},
		first:  []call{{takeAll, "abc", 1, 2}, {takeAll, "ba", 3, 2}},
		second: []call{{take, "a", 2, 7}, {take, "b", 2, 1}},
	},
	{
		name: "twice of one", maxKeys: 4,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{takeAll, "aa", 1, 3}},
		second: []call{{take, "a", 2, 4}},
		third:  []call{{takeAll, "aa", 1, 2}},
	},
	{
		name: "undone while other calls take", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{takeAll, "a!", 0, 4}},
		second: []call{{take, "a", 0, 5}, {take, "a", 0, 3}},
	},
	{
		name: "two undone", maxKeys: 4,
		before: []call{{take, "a", 0, 1}},
		first:  []call{{takeAll, "a!", 3, 4}},
		second: []call{{takeAll, "a!", 1, 5}},
		third:  []call{{take, "a", 2, 1}, {take, "a", 3, 9}},
	},
	{
		name: "undone when the bucket would have been full", maxKeys: 4, small: true,
		before: []call{{take, "a", 0, 1}},
		first:  []call{{takeAll, "a!", 5, 4}},
		second: []call{{take, "a", 8, 1}, {take, "a", 8, 10}, {take, "a", 8, 9}},
	},
	{
		name: "undone after a later grant", maxKeys: 4,
		before: []call{{take, "a", 0, 6}},
		first:  []call{{takeAll, "a!", 1, 4}, {peek, "a", 1, 0}},
		second: []call{{take, "a", 3, 2}, {take, "a", 1, 5}},
	},
	{
		name: "undone or evicted", maxKeys: 1, medium: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{takeAll, "a!", 1, 4}},
		second: []call{{take, "b", 1, 3}, {take, "a", 1, 6}, {take, "a", 1, 5}},
	},
	{
		name: "undone, evicted and taken", maxKeys: 1, undone: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{takeAll, "a!", 1, 4}},
		second: []call{{take, "b", 1, 3}},
		third:  []call{{take, "a", 1, 6}},
	},
	{
		name: "undone, and a new key", maxKeys: 1, undone: true,
		before: []call{{take, "b", 0, 2}},
		first:  []call{{takeAll, "a!", 3, 4}},
		second: []call{{take, "b", 4, 7}, {take, "a", 2, 7}},
	},
	{
		name: "all of two that are new", maxKeys: 4, undone: true,
		before: []call{{take, "c", 0, 1}},
		first:  []call{{takeAll, "ab", 0, 6}},
		second: []call{{takeAll, "ba", 0, 6}},
	},
	{
		name: "all of two, and one slot", maxKeys: 1,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{takeAll, "ab", 5, 4}},
		second: []call{{take, "b", 5, 4}, {take, "a", 5, 4}},
	},
	{
		name: "RefuseNew, all of two", maxKeys: 1, overflow: tb.RefuseNew, undone: true,
		before: []call{{take, "a", 0, 2}},
		first:  []call{{takeAll, "ba", 5, 4}},
		second: []call{{take, "a", 6, 4}, {take, "b", 5, 4}},
	},
	{
		name: "undone or reset", maxKeys: 2, moves: true, undone: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{takeAll, "a!", 5, 4}},
		second: []call{{reset, "a", 0, 0}, {take, "a", 5, 8}, {take, "a", 5, 3}},
	},
	{
		name: "reset after a look", maxKeys: 4, undone: true,
		before: []call{{take, "a", 0, 4}, {take, "b", 0, 10}},
		first:  []call{{reset, "a", 0, 0}, {reset, "b", 0, 0}},
		second: []call{{takeAll, "ab", 0, 2}},
	},
	{
		name: "undone or moved", maxKeys: 2, moves: true, small: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{takeAll, "a!", 274_876, 4}},
		second: []call{{take, "a", 274_877, 3}, {take, "a", 274_877, 7}},
	},
	{
		name: "undone, moved and taken", maxKeys: 2, moves: true,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{takeAll, "a!", 274_876, 4}},
		second: []call{{take, "a", 274_877, 6}},
		third:  []call{{take, "a", 274_876, 5}},
	},
	{
		name: "undone after it has moved", maxKeys: 2,
		before: []call{{take, "a", 0, 9}},
		first:  []call{{takeAll, "a!", exhausted, 4}},
		second: []call{{take, "a", exhausted + 1, 3}, {take, "a", exhausted - 1, 7}},
	},
	{
		name: "all of two that move", maxKeys: 2,
		before: []call{{take, "a", 0, 9}, {take, "b", 0, 9}},
		first:  []call{{takeAll, "ab", exhausted, 6}},
		second: []call{{takeAll, "ba", exhausted + 1, 6}},
	},
}
