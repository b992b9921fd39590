package fuzz

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// named is a program and what it is about.
type named struct {
	name string
	program
}

// programsByHand are programs for single rules of the contract.
var programsByHand = []named{
	{"a fraction of a unit a nanosecond, for centuries", program{
		tb.Limit{Capacity: 2, Tokens: 1, Per: math.MaxInt64}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowCost, key: "a", cost: 1.999999},
			{op: allowN, key: "a", n: 1},
			{step: 200 * 365 * 24 * time.Hour, op: allowCost, key: "a", cost: 0.5},
			{step: 90 * 365 * 24 * time.Hour, op: allowN, key: "a", n: 1},
			{step: math.MaxInt64, op: allowN, key: "a", n: 1},
			{step: math.MinInt64, op: allowN, key: "a", n: 1},
		},
	}},
	{"a thousand units a nanosecond", program{
		tb.Limit{Capacity: 3, Tokens: 1, Per: 1000}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 3},
			{step: 999, op: allowN, key: "a", n: 1},
			{step: 1, op: allowN, key: "a", n: 1},
			{step: 7, op: allowCost, key: "a", cost: 0.007},
			{step: time.Hour, op: allowN, key: "a", n: 3},
			{step: time.Hour, op: allowN, key: "a", n: 3},
			{step: 1, op: allowCost, key: "a", cost: 0.001001},
		},
	}},
	{"the least capacity whose units are tokens", program{
		tb.Limit{Capacity: 1 << 23, Tokens: 1, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowCost, key: "a", cost: 0.1},
			{op: allowCost, key: "a", cost: 0.1},
		},
	}},
	{"full again at the last instant, and beyond", program{
		tb.Limit{Capacity: 3, Tokens: 1, Per: 1}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 3},
			{step: math.MaxInt64 - 3, op: allowN, key: "b", n: 3},
			{op: allowN, key: "b", n: 3},
			{step: 1, op: allowN, key: "c", n: 3},
			{step: 2, op: allowN, key: "d", n: 3},
			{op: allowN, key: "d", n: 1},
			{op: allowN, key: "e", n: 1},
		},
	}},
	{"full again beyond the last instant, slowly", program{
		tb.Limit{Capacity: 3, Tokens: 1, Per: 1000}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 3},
			{step: math.MaxInt64, op: allowN, key: "a", n: 3},
			{op: allowN, key: "a", n: 1},
		},
	}},
	{"two units of 292 years", program{
		tb.Limit{Capacity: 1, Tokens: 1, Per: math.MaxInt64}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowCost, key: "a", cost: 0.000002},
			{op: allowN, key: "a", n: 1},
		},
	}},
	{"full for a minute", program{
		tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 9, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 1},
			{step: 1, op: allowN, key: "b", n: 1},
			{step: time.Minute + time.Second - 2, op: allowN, key: "c", n: 1},
			{step: 1, op: allowN, key: "d", n: 1},
			{op: allowN, key: "e", n: 1},
			{step: 1, op: allowN, key: "f", n: 1},
		},
	}},
	{"ties go to the first inserted", program{
		tb.Limit{Capacity: 5, Tokens: 1, Per: time.Second}, 3, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 2},
			{op: allowN, key: "b", n: 2},
			{op: allowN, key: "c", n: 2},
			{op: allowN, key: "d", n: 2},
			{op: peek, key: "a"},
			{op: peek, key: "b"},
			{op: allowN, key: "e", n: 1},
			{op: peek, key: "b"},
			{op: allowN, key: "f", n: 1},
			{op: peek, key: "e"},
		},
	}},
	{"back in time after eviction", program{
		tb.Limit{Capacity: 5, Tokens: 1, Per: time.Second}, 1, tb.RefuseNew,
		[]call{
			{op: allowN, key: "a", n: 5},
			{step: time.Minute, op: allowN, key: "b", n: 1},
			{step: time.Second, op: allowN, key: "a", n: 5},
			{step: -30 * time.Second, op: allowN, key: "b", n: 1},
			{step: 40 * time.Second, op: allowN, key: "b", n: 5},
			{step: -20 * time.Second, op: reset, key: "b"},
			{op: allowN, key: "b", n: 5},
			{step: 19 * time.Second, op: allowN, key: "b", n: 1},
			{step: 2 * time.Second, op: allowN, key: "b", n: 1},
		},
	}},
}
