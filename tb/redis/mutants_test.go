package redis

import (
	"flag"
	"strings"
	"testing"
)

// bugs are changes of the scripts that the tests must find. The text before a change occurs in its
// script exactly once.
var bugs = []struct {
	name        string
	script      func(*texts) *string
	before, bug string
}{
	{"narrow: no phase", narrowOf, "(s % D) * (N % D) % D + ", ""},
	{"narrow: the phase is not reduced", narrowOf, "(N % D) % D", "(N % D)"},
	{"narrow: the phase of the decision", narrowOf, "(s % D)", "((s + e) % D)"},
	{"narrow: rounds up", narrowOf, "math.floor", "math.ceil"},
	{"wide: splits off too few bits", wideOf, "134217729", "1025"},
	{"wide: splits off too many bits", wideOf, "134217729", "35184372088833"},
	{"wide: no low part", wideOf, " + (low(a, b, p) - low(q, m, g))", ""},
	{"wide: no low part of the dividend", wideOf, "(low(a, b, p) - low(q, m, g))", "-low(q, m, g)"},
	{"wide: no low part of the quotient", wideOf, " - low(q, m, g)", ""},
	{"wide: a low part lacks a product", wideOf, " + al * bl", ""},
	{"wide: a low part lacks a mixed product", wideOf, " + al * bh", ""},
	{"wide: the quotient is not corrected", wideOf, "q + k", "q"},
	{"wide: the remainder is not corrected", wideOf, "rest - k * m", "rest"},
	{"wide: no phase", wideOf, "divide(e, N, r, D)", "divide(e, N, 0, D)"},
	{"wide: the phase of the decision", wideOf, "divide(s % D", "divide((s + e) % D"},

	{"a key of the local time", clockOf, "t[1] * 1000000 + t[2]", "t[1] * 1000000"},
	{"deadline: a µs early", takeOf, "if t <= x", "if t < x"},
	{"deadline: none", takeOf, "if t <= x", "if true"},
	{"deadline: none was in time, and the state is returned", takeOf, "if late then return t end", ""},
	{
		"deadline: of the first cost", takeOf, "x, cost, i = struct.unpack('>I7I4', costs, i)",
		"_, cost, i = struct.unpack('>I7I4', costs, i)",
	},
	{"scale: not converted up", readOf, "d = d * 10 ^ (format - f)", "d = d"},
	{"scale: not converted down", readOf, "d = math.ceil(d / 10 ^ (f - format))", "d = d"},
	{"scale: rounded down", readOf, "math.ceil(d / 10", "math.floor(d / 10"},
	{"scale: a new scale is a new bucket", readOf, "d = d * 10 ^ (format - f) else", "d = 0 else"},
	{"value: any first byte below", readOf, "f < 16 or ", ""},
	{"value: any first byte above", readOf, " or f > 22", ""},
	{"value: any length", readOf, "if #value == 12 then f", "if true then f"},
	{"clock: set back at once", readOf, "t + slack then", "t then"},
	{"clock: set back a µs early", readOf, "s > t + slack", "s >= t + slack"},
	{"clock: of a client, set back", clockOf, "math.huge", "1000000"},
	{"clock: set back is not written", readOf, "math.min(d, C), true", "math.min(d, C), false"},
	{"clock: set back fills", readOf, "t, math.min(d, C), true", "t, 0, true"},
	{"clock: never set back", readOf, "s > t + slack", "false"},
	{"capacity: forgives the deficit above it", readOf, "s + math.ceil((d - C) * D / N) + 1", "s"},
	{"capacity: a deficit above it is not moved", readOf, "elseif d > C then", "elseif false then"},
	{"refill: more than full", readOf, "if d < 0 then d = 0 end", ""},
	{"refill: time moves back", readOf, "if t > s then", "if true then"},
	{"refill: counted twice", readOf, "    s = t\n  end\nend", "  end\nend"},
	{"cost: the last token is not taken", takeOf, "if d + cost <= C", "if d + cost < C"},
	{"cost: one token more", takeOf, "if d + cost <= C", "if d + cost <= C + 1"},
	{"cost: stops at a refusal", takeOf, "else all = false end", "else all = false break end"},
	{"cost: only the first", takeOf, "if i > #costs", "if i > 0"},
	{"write: refusals too", takeOf, "if d > before or stepped", "if true"},
	{"write: not at all", takeOf, "d > before or stepped", "stepped"},
	{"write: the time of the decision", writeOf, "format, s, d)", "format, t, d)"},
	{"write: the deficit before", takeOf, "-- include write.lua", "d = before -- include write.lua"},
	{"write: another scale", writeOf, "'>BI7I4', format", "'>BI7I4', 22"},
	{"expiry: a ms early", writeOf, "/ 1000) + 1", "/ 1000)"},
	{"expiry: a ms late", writeOf, "/ 1000) + 1", "/ 1000) + 2"},
	{"expiry: from the decision", writeOf, "and s or", "and t or"},
	{"expiry: by the clock of another client", writeOf, "or 1000000", "or 0"},
	{"expiry: from the decision of a client", writeOf, "or 1000000", "or s - t + 1000000"},
	{"expiry: without the deficit", writeOf, "from + d * D / N", "from"},
	{"expiry: may overflow", writeOf, "if ms > 9e15 then ms = 9e15 end", ""},
	{"reply: a late reading has the value", takeOf, "if all and s == t", "if all"},
	{"reply: the value although not all are granted", takeOf, "if all and s == t", "if s == t"},
	{"reply: the deficit after", takeOf, "s, before, t)", "s, d, t)"},

	{"takeeach: deadline a µs early", takeEachOf, "if t <= x", "if t < x"},
	{"takeeach: no deadline", takeEachOf, "t <= x and ", ""},
	{"takeeach: the last token is not taken", takeEachOf, "d + cost <= C", "d + cost < C"},
	{"takeeach: only the first cost", takeEachOf, "for _ = 1, n do", "for _ = 1, 1 do"},
	{"takeeach: the buckets share a deficit", takeEachOf, "if d > before or", "if true or"},
	{"takeeach: not written", takeEachOf, "d > before or stepped", "stepped"},
	{"takeeach: a clock set back is not written", takeEachOf, " or stepped", ""},
	{"takeeach: the state after", takeEachOf, "'>I7I4', s, d)", "'>I7I4', s, d + 1)"},
	{"takeeach: writes the first bucket", takeEachOf, "deficits[k]\n", "deficits[1]\n"},
	{"takeeach: writes before it reads", takeEachOf, "  if d > before or stepped then", `
  if d > before or stepped then redis.call('SET', key, value or '', 'PXAT', 9e15)`},
	{"takeall: deadline", takeAllOf, "if t > x then return t end", ""},
	{"takeall: the last token is not taken", takeAllOf, "d + cost > C", "d + cost >= C"},
	{"takeall: one bucket may refuse", takeAllOf, "all = false end", "end"},
	{"takeall: a refusal takes from the others", takeAllOf, "if all then d", "if true then d"},
	{"takeall: the cost of the last", takeAllOf, "if all then d = d + cost end", ""},
	{"takeall: a clock set back is not written", takeAllOf, "all or stepped", "all"},
	{"takeall: a refusal is written", takeAllOf, "if all or stepped", "if true"},
	{"giveback: all of the cost", giveBackOf, "cost - supplied(s, now - s, N, D)", "cost"},
	{"giveback: the supply of another time", giveBackOf, "(s, now - s", "(0, now - s"},
	{"giveback: more than the deficit", giveBackOf, "N, D), d)", "N, D), cost)"},
	{"giveback: a negative cost", giveBackOf, "if back > 0", "if true"},
	{"giveback: another scale", giveBackOf, "f == format and ", ""},
	{"giveback: after the clock was set back", giveBackOf, " and now >= s", ""},
	{"giveback: the time of the grant", giveBackOf, "format, now, d", "format, s, d"},
	{"giveback: any length", giveBackOf, " and #value == 12", ""},
	{"giveback: no expiry", giveBackOf, ", 'KEEPTTL'", ""},
}

func takeEachOf(x *texts) *string { return &x.takeEach }
func takeAllOf(x *texts) *string  { return &x.takeAll }
func giveBackOf(x *texts) *string { return &x.giveBack }
func clockOf(x *texts) *string    { return &x.clock }
func readOf(x *texts) *string     { return &x.read }
func writeOf(x *texts) *string    { return &x.write }
func takeOf(x *texts) *string     { return &x.take }
func narrowOf(x *texts) *string   { return &x.narrow }
func wideOf(x *texts) *string     { return &x.wide }

var everything = flag.Bool("all", false, "plant all bugs, and simulate more histories and leases")

func TestPlantedBugsAreFound(t *testing.T) {
	s := startSimulator(t, shipped)
	programs := 300
	if *everything {
		programs = 1500
	}
	var all []*program
	for seed := uint64(0); len(all) < programs; seed++ {
		if p, ok := newProgram(seed); ok {
			all = append(all, p)
		}
	}
	for i, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			x := shipped
			text := b.script(&x)
			if n := strings.Count(*text, b.before); n != 1 {
				t.Fatalf("%q occurs %d times, want 1", b.before, n)
			}
			if !*everything && i%8 > 0 {
				t.Skip("this bug is only planted with -all")
			}
			s.flush(t)
			*text = strings.Replace(*text, b.before, b.bug, 1)
			if err := newSimulator(s.client, x).find(all); err != nil {
				t.Log(err)
			} else {
				t.Error("no test finds it")
			}
		})
	}
}

// find returns the first error of the tests on the scripts.
func (s *simulator) find(programs []*program) error {
	for _, b := range behaviours {
		if err := b.check(s); err != nil {
			return err
		}
	}
	for _, p := range programs {
		if err := s.compare(p, new(tally)); err != nil {
			return err
		}
	}
	return nil
}
