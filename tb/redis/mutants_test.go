package redis

import (
	"flag"
	"strings"
	"testing"
)

// bugs are changes of the script that the tests must find. The text before a change occurs in the
// script exactly once.
var bugs = []struct{ name, before, bug string }{
	{"splits off too few bits", "134217729", "1025"},
	{"splits off too many bits", "134217729", "35184372088833"},
	{"no low part", " + (low(a, b, p) - low(q, m, g))", ""},
	{"no low part of the dividend", "(low(a, b, p) - low(q, m, g))", "-low(q, m, g)"},
	{"no low part of the quotient", " - low(q, m, g)", ""},
	{"a low part lacks a product", " + al * bl", ""},
	{"a low part lacks a mixed product", " + al * bh", ""},
	{"the quotient is not corrected", "q + k", "q"},
	{"the remainder is not corrected", "rest - k * m", "rest"},
	{"narrow: no phase", "((s % D) * (N % D) % D + e * N)", "(e * N)"},
	{"narrow: above its range", "D <= 67108864 and e * N < 4503599627370496", "true"},
	{"narrow: too many divisors", "D <= 67108864 and ", ""},
	{"no phase", "divide(e, N, r, D)", "divide(e, N, 0, D)"},
	{"the phase of the decision", "divide(s % D", "divide((s + e) % D"},
	{"a key of the local time", "time[1] * 1000000 + time[2]", "time[1] * 1000000"},

	{"refill: more than full", "if d < 0 then d = 0 end", ""},
	{
		"refill: debt waits for the own time",
		"if d > capacity then s, d, ahead = t, d + ahead, 0 end",
		"",
	},
	{"refill: nothing is ahead", "ahead = supplied(t, s - t, rate, divisor)", "ahead = 0"},
	{"refill: time moves back", "ahead = supplied(t, s - t, rate, divisor)", "s = t"},

	{"value: any length", "if value and #value ~= 28 and #value ~= 35 then", "if false then"},
	{"clock: set back at once", "t + 1000000 then", "t then"},
	{"clock: set back a µs early", "s > t + 1000000", "s >= t + 1000000"},
	{"clock: set back is not written", "s, stored = t, false end", "s = t end"},
	{"clock: never set back", "if s > t + 1000000", "if false"},
	{"limit: the digits are not compared", "own = scale == digits and ", "own = "},
	{"limit: the capacity is not compared", " and capacity == C", ""},
	{"limit: the rate is not compared", " and rate == N and divisor == D", ""},
	{
		"limit: keeps the deficit",
		"d = C - math.min(math.floor(tokens / unit), C)",
		"d = math.min(d, C)",
	},
	{"limit: rounds up", "math.floor(tokens / unit)", "math.ceil(tokens / unit)"},
	{"limit: more than full", "math.min(math.floor(tokens / unit), C)", "math.floor(tokens / unit)"},
	{"limit: forgives a debt", "math.min(C + math.ceil(-tokens / unit), 2 ^ 32 - 1)", "C"},
	{"limit: rounds a debt down", "math.ceil(-tokens", "math.floor(-tokens"},
	{"limit: the scale is the same", "10 ^ (6 - scale), ", "10 ^ (6 - digits), "},
	{
		"limit: refills by the new rate",
		"supplied(s, t - s, rate, divisor)",
		"supplied(s, t - s, N, D)",
	},
	{"limit: ahead by the old rate", "if s > t then ahead = supplied(t, s - t, N, D) end", ""},
	{"limit: the change is not counted", "change = math.max(t, change + 1)", "change = 1"},
	{"limit: changes of an instant are one", "math.max(t, change + 1)", "t"},
	{"limit: the change is not read", "then change = parse('>I7', value, 29) end", "then end"},
	{
		"limit: a refusal does not convert",
		"was, lacked, stored = s, d, false",
		"was, lacked, stored = s, d, true",
	},
	{"limit: a look converts", "if kind == 1 then", "if false then"},
	{"limit: a look at a full bucket converts", "units <= C and d + units > C, 0", "true, 0"},
	{"limit: an impossible look converts", "units > 0 and units <= C and d", "units > 0 and d"},
	{"limit: a look in debt converts", "units > 0 and units <= C", "units <= C"},
	{"limit: a look converts never", "converts, units = units > 0 and", "converts, units = false and"},
	{"limit: an undo converts", "local converts = kind ~= 5", "local converts = true"},
	{"limit: a late call converts", "and pays and converts", "and converts"},
	{"look: takes", "d + units > C, 0\n", "d + units > C, units\n"},

	{"deadline: a µs early", "local pays = t <= x and", "local pays = t < x and"},
	{"deadline: none", "local pays = t <= x and", "local pays ="},
	{
		"take: the last token is not taken",
		"pays = pays and d + units <= C\n",
		"pays = pays and d + units < C\n",
	},
	{
		"take: one unit more",
		"pays = pays and d + units <= C\n",
		"pays = pays and d + units <= C + 1\n",
	},
	{"reserve: a cost above the capacity", "units <= C and owed <= debt", "owed <= debt"},
	{"reserve: any debt", "owed <= debt and", "true and"},
	{"reserve: a unit less", "owed <= debt", "owed < debt"},
	{"reserve: any wait", "owed <= supplied(t, math.min(within, forever), N, D)", "true"},
	{"reserve: the clock does not end", "math.min(within, forever)", "within"},
	{
		"reserve: not from the present",
		"local owed = d + units - C + ahead",
		"local owed = d + units - C",
	},
	{"give back: a debt keeps its own time", "then was, lacked = s, d end", "then end"},
	{"give back: more than was taken", "units = -math.min(units, lacked)", "units = -units"},
	{"charge: any debt", "math.max(0, math.min(units, 2 * C - ahead - d))", "units"},
	{"charge: no debt", "2 * C - ahead - d", "C - ahead - d"},
	{
		"charge: a negative debt",
		"math.max(0, math.min(units, 2 * C - ahead - d))",
		"math.min(units, 2 * C - ahead - d)",
	},
	{
		"charge: the clock does not end",
		"if d + units > C and d + units - C + ahead >",
		"if false and 0 >",
	},
	{"undo: after a change", "if c ~= change or", "if"},
	{"undo: all of the cost", "math.max(0, gain - math.max(0, m + units - C))", "0"},
	{"undo: the wait counts as supply", "gain - math.max(0, m + units - C)", "gain"},
	{"undo: a later reservation moves", "lacked + gain ~= m + units", "false"},
	{
		"undo: not after a reservation",
		"elseif pays then\n        was, lacked, units = w, l + units, -units",
		"else\n        units = 0",
	},
	{
		"undo: keeps the later own time",
		"was, lacked, units = w, l + units, -units",
		"units = -units",
	},
	{"reset: the value stays", "value = pcall('DEL', key)", "value = 1"},
	{"reset: the next item finds the old bucket", "= t, 0, 0, t, 0, false", "= t, d, 0, t, d, false"},
	{
		"reset: not of another value",
		"state, change, stored, stale = 0,",
		"_, change, stored, stale = 0,",
	},
	{"reset: of a bucket that is converted", "0, 0, true, false", "0, 0, true, stale"},
	{"state: keeps the own time", "was, lacked, changed = s, d, true", "lacked, changed = d, true"},
	{
		"state: an item does not see the one before",
		"d, lacked, changed = math.max(0, d + units)",
		"_, lacked, changed = math.max(0, d + units)",
	},
	{"all: one bucket may refuse", "if not pays then granted = false end", ""},
	{"all: a refusal takes from the others", "if not granted then", "if false then"},
	{
		"all: a refusal refuses the next group",
		"granted = {}, true end",
		"granted = {}, granted ~= false end",
	},
	{"all: a group never ends", "if not joined then group = nil end", ""},
	{"all: the last bucket is alone", "if group then\n    group[", "if joined then\n    group["},
	{"all: a conversion takes", "b[8], b[9], b[10] = b[12], b[13], false", "b[10] = false"},
	{"all: no conversion", "if b[10] or b[11] then", "if b[10] then"},
	{"all: a grant is not written", "if b[10] or b[11] then", "if b[11] then"},
	{"write: refusals too", "elseif changed or stale then", "else"},
	{"write: not at all", "elseif changed or stale then", "elseif stale then"},
	{"write: no conversion", "elseif changed or stale then", "elseif changed then"},
	{
		"write: the time of the decision",
		"I6', digits, s, d, C, N, D)",
		"I6', digits, t, d, C, N, D)",
	},
	{"write: another limit", "I6', digits, s, d, C, N, D)", "I6', digits, s, d, C, D, N)"},
	{"expiry: a ms early", "/ 1000 + 1", "/ 1000"},
	{"expiry: a ms late", "/ 1000 + 1", "/ 1000 + 2"},
	{"expiry: without the deficit", "(s + d * D / N)", "s"},
	{"expiry: from the decision", "(s + d * D / N)", "(t + d * D / N)"},
	{"expiry: a converted bucket is kept no longer", "if change > 0 then\n    local left", "if false then\n    local left"},
	{"expiry: may overflow", "if ms > 9e15 then ms = 9e15 end", ""},
	{"reply: the deficit after", "t, state, since, lack, change)", "t, state, since, lacked, change)"},
	{"reply: the deficit after, of more", "pack('>BI7I4I7', state, since, lack, change)", "more[1]"},
}

// plant returns the text of the script with a bug.
func plant(t testing.TB, before, bug string) string {
	t.Helper()
	if n := strings.Count(bucketsText, before); n != 1 {
		t.Fatalf("%q occurs %d times, want 1", before, n)
	}
	return strings.Replace(bucketsText, before, bug, 1)
}

var everything = flag.Bool("all", false, "plant all bugs, and simulate more histories and leases")

func TestPlantedBugsAreFound(t *testing.T) {
	s := startSimulator(t, bucketsText)
	programs := 600
	var all []*program
	for seed := uint64(0); len(all) < programs; seed++ {
		if p, ok := newProgram(seed); ok {
			all = append(all, p)
		}
	}
	for i, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			text := plant(t, b.before, b.bug)
			if !*everything && i%8 > 0 {
				t.Skip("this bug is only planted with -all")
			}
			s.flush(t)
			if err := newSimulator(s.client, text).find(all); err != nil {
				t.Log(err)
			} else {
				t.Error("no test finds it")
			}
		})
	}
}

// find returns the first error of the tests on the script.
func (s *simulator) find(programs []*program) error {
	for _, b := range behaviours {
		if err := b.check(s); err != nil {
			return err
		}
	}
	return s.compare(programs, new(tally))
}
