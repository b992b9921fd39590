package peers

import "math"

var xtimeLate = cell{verdict: breaks, script: backwards,
	why: "A late call that is granted sets the bucket's time back, and the time since is " +
		"credited again, although the documentation speaks of a token bucket. Callers that " +
		"read the clock first and then queue for the lock are late without any fault of the " +
		"clock."}

var xtimeCosts = cell{verdict: noClaim,
	script: on(fives, take(0, 10, granted), take(0, 1, refused), take(0, -5, granted),
		take(0, 5, granted)),
	why: "A negative cost gives tokens back, up to the burst. The documentation says nothing " +
		"about it. Costs above the burst are refused, up to the largest int."}

var unbound = cell{verdict: noClaim,
	why: "There is no option for it. Of 3,000 keys, each with a refusal ahead, all 3,000 are " +
		"remembered. (That idle keys leave the table is not part of the check.)"}

// httprateCells are those of a limiter whose check of late calls is a script alone: it
// reads the clock itself, but lets another call in after that.
var httprateCells = map[string]cell{
	"C1 bound": {verdict: noClaim,
		script: on(fives, take(sec(2)-1, 10, granted), take(sec(2.1), 1, refused),
			take(sec(2.1)+1, 1, granted)),
		why: "It weighs the counts of two windows, as documented, and rounds the sum to a whole " +
			"number. So up to half a token more than the bound is granted."},
	"C1 late": {verdict: breaks, alone: true,
		script: on(fives,
			move{at: sec(2) - 1, key: "late", n: 1, want: granted, others: []move{
				by("a", take(sec(2), 10, granted)), by("a", take(sec(2), 1, refused)),
				by("b", take(sec(2), 10, granted)), by("b", take(sec(2), 1, refused)),
			}},
			by("b", take(sec(2), 10, granted)), by("a", take(sec(2), 10, granted))),
		why: "The window is chosen before the lock is taken. A call that chose the old window, " +
			"and is overtaken by one in the new window, moves the table back and clears it: " +
			"all keys are full again. The gap is short, but it comes at the end of each window."},
	"C1 eviction": {verdict: noBound},
	"C2 no lost credit": {verdict: noClaim,
		script: on(fives, take(0, 10, granted), take(sec(2), 1, refused)),
		why: "What was taken in the last window counts as spread over it, so it may be refused " +
			"for longer than it takes to refill. This is what a sliding counter does."},
	"C1, C2 no drift": {verdict: windows},
	"C3 exact wait": {verdict: noClaim,
		script: on(fives, take(0, 10, granted), ask(0, 1, sec(2)), take(sec(2), 1, refused),
			take(sec(2.1)+1, 1, granted)),
		why: "Retry-After is always the length of the window, in whole seconds. It may be too " +
			"long or too short."},
	"C3 never": {verdict: noClaim, script: on(fives, ask(0, 11, sec(2))),
		why: "Retry-After is the length of the window for every call."},
	"C5 time":    {verdict: ownClock},
	"C7 bounded": unbound,
	"C8 costs": {verdict: breaks,
		script: on(fives, take(0, 1, granted), take(0, math.MaxInt64, granted),
			take(0, 1_000_000, granted)),
		why: "The sum overflows, the huge call is granted, and so are all after it in this " +
			"window. A negative cost gives tokens back; about these the documentation says " +
			"nothing."},
}
