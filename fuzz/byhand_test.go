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
	{"a late reading after a hold that is over", program{
		tb.Limit{Capacity: 49, Tokens: 49, Per: time.Millisecond}, 4, tb.ForgiveLeast,
		[]call{
			{step: 5739, op: hold, key: "a", within: 17538},
			{step: 1414062, op: reserve, key: "a", n: 6, cost: 0.6},
			{step: -391840107094624, op: hold, key: "a", within: 7652},
			{op: allowN, key: "a", n: 1},
		},
	}},
	{"a change during a hold, and a debt behind it", program{
		tb.Limit{Capacity: 50, Tokens: 25, Per: time.Millisecond}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 50},
			{op: reserve, key: "a", n: 48, cost: 4.8},
			{step: 15624, op: hold, key: "a", within: 55000},
			{op: setLimit, limit: tb.Limit{Capacity: 50, Tokens: 1, Per: 68719476736}},
			{step: 20000, op: reserve, key: "a", n: 10, cost: 1},
			{step: 80 * time.Minute, op: reserve, key: "a", n: 1, cost: 0.1},
		},
	}},
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
	// Reservations, settlement and changes of the limit. Most first calls take all tokens.
	{"a reading from the future, and three capacities", program{
		tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: 10 * time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 1},
			{step: 15 * time.Second, op: allowN, key: "a", n: 1 << 30},
			{step: -10 * time.Second, op: setLimit, key: "a",
				limit: tb.Limit{Capacity: 1<<30 - 1, Tokens: 1, Per: 10 * time.Second}},
			{step: 22 * time.Second, op: setLimit, key: "a",
				limit: tb.Limit{Capacity: 10, Tokens: 1, Per: 10 * time.Second}},
			{step: 3 * time.Second, op: setLimit, key: "a",
				limit: tb.Limit{Capacity: 11, Tokens: 1, Per: 10 * time.Second}},
		},
	}},
	{"the deepest debt, and the end of its wait", program{
		tb.Limit{Capacity: 83, Tokens: 100, Per: time.Second}, 4, tb.RefuseNew,
		[]call{
			{op: allowN, key: "a", n: 83},
			{op: wait, key: "a", n: 83, within: time.Hour, held: 1},
			{op: wait, key: "a", n: 83, within: 829 * time.Millisecond},
			{op: wait, key: "a", n: 83, within: 830 * time.Millisecond},
			{op: reserve, key: "a", cost: 1},
			{op: allowN, key: "b", n: 84},
			{op: wait, key: "b", n: 84, within: time.Hour},
		},
	}},
	{"settled with more, into debt, and not paid", program{
		tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{op: reserve, key: "a", cost: 1},
			{op: settle, cost: 15.5},
			{op: reserve, key: "a", cost: 4},
			{op: settle, cost: 1000},
			{step: time.Minute, op: settle, cost: 1},
			{op: reserve, key: "b", cost: 1},
			{op: reset, key: "b"},
			{op: settle, cost: 1 << 60},
			{op: reserve, key: "b", cost: 1},
			{op: settle, cost: math.NaN()},
			{op: settle, cost: -1},
			{op: settle, cost: math.Inf(1)},
		},
	}},
	{"a late reading before the base of a bucket in debt", program{
		tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{step: time.Hour, op: reserve, key: "a", cost: 10},
			{op: reserve, key: "a", cost: 1},
			{step: -time.Second, op: reserve, key: "a", cost: 9},
			{op: reserve, key: "a", cost: 4},
			{op: settle, cost: 30},
			{step: -time.Second, op: settle, cost: 0.5, held: 1},
			{step: -time.Minute, op: settle, cost: 1, held: 2},
		},
	}},
	{"settled after an idle time of more than 2⁶² units", program{
		tb.Limit{Capacity: 468, Tokens: 4, Per: 4}, 4, tb.ForgiveLeast,
		[]call{
			{op: reserve, key: "a", cost: 467},
			{step: math.MaxInt64 / 100, op: settle, cost: 1.9e9},
		},
	}},
	{"settled when the clock ends before the slot", program{
		tb.Limit{Capacity: 100, Tokens: 1, Per: 1000 * time.Hour}, 4, tb.ForgiveLeast,
		[]call{
			{step: math.MaxInt64, op: reserve, key: "a", cost: 1},
			{op: reset, key: "a"},
			{op: settle, cost: 150},
			{op: reserve, key: "a", cost: 100},
			{op: reserve, key: "a", cost: 1},
		},
	}},
	{"the first reservation of an era is cancelled", program{
		tb.Limit{Capacity: 29, Tokens: 42, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{op: reserve, key: "a", cost: 28.9999885},
			{op: setLimit, limit: tb.Limit{Capacity: 63, Tokens: 20, Per: time.Second}},
			{op: reserve, key: "a", cost: 30},
			{op: cancel},
			{op: cancel},
		},
	}},
	{"settled when the capacity is less than the estimate", program{
		tb.Limit{Capacity: 100, Tokens: 1, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{op: reserve, key: "a", cost: 90},
			{op: reserve, key: "a", cost: 20},
			{op: setLimit, limit: tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}},
			{op: settle, cost: 80, held: 1},
			{op: settle, cost: 25},
		},
	}},
	{"a bucket that no call uses for an era and a change of the rate", program{
		tb.Limit{Capacity: 6, Tokens: 7, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{op: allowN, key: "a", n: 6},
			{step: 1, op: setLimit, limit: tb.Limit{Capacity: 1000, Tokens: 7, Per: time.Second}},
			{step: time.Hour, op: setLimit, limit: tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}},
			{op: allowN, key: "a", n: 1000},
		},
	}},
	{"a reading from the future, and then another capacity", program{
		tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{step: 200 * 365 * 24 * time.Hour, op: allowN, key: "a", n: 9},
			{op: reserve, key: "a", cost: 9},
			{step: -200 * 365 * 24 * time.Hour, op: allowN, key: "b", n: 9},
			{op: setLimit, limit: tb.Limit{Capacity: 11, Tokens: 5, Per: time.Second}},
			{op: allowN, key: "b", n: 1},
			{op: allowN, key: "b", n: 1},
		},
	}},
	{"a refusal holds before a debt that is too deep to keep", program{
		tb.Limit{Capacity: 10, Tokens: 1, Per: 1}, 4, tb.ForgiveLeast,
		[]call{
			{step: time.Hour, op: allowN, key: "a", n: 10},
			{op: reserve, key: "a", cost: 1},
			{step: -time.Hour, op: keep, key: "a", cost: 1, refusal: 1},
			{step: 1<<32 + 1, op: keep, key: "a", cost: 1},
			{step: 1, op: keep, key: "a", cost: 1},
		},
	}},
	{"a refusal holds until the last instant", program{
		tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{step: math.MaxInt64 - time.Minute, op: allowN, key: "a", n: 10},
			{op: keep, key: "a", cost: 1, refusal: time.Hour},
			{step: time.Minute - 1, op: allowN, key: "a", n: 1},
		},
	}},
	{"a refusal holds from a late reading until the bucket's own time", program{
		tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 4, tb.ForgiveLeast,
		[]call{
			{step: time.Minute, op: allowN, key: "a", n: 8},
			{step: -time.Minute, op: keep, key: "a", cost: 3, refusal: time.Second},
			{step: time.Minute, op: keep, key: "a", cost: 3, refusal: time.Second},
			{step: time.Second, op: keep, key: "a", cost: 1},
		},
	}},
}
