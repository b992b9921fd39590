package peers

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// cell is what is expected of one limiter in one column, if it does not keep it.
type cell struct {
	verdict string // breaks, noClaim, or why the column does not apply
	why     string
	script  *script
	alone   bool // the script is the only check
}

const (
	breaks  = "breaks"
	noClaim = "no claim"

	noKeys   = "no keys"
	noBound  = "no bound"
	noCosts  = "no costs"
	noWait   = "no wait"
	ownClock = "own clock"
	windows  = "windows"
	waits    = "waits"
)

// sec and hrs are readings of the clock.
func sec(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
func hrs(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

func on(limit tb.Limit, moves ...move) *script { return &script{limit: limit, moves: moves} }

func take(at time.Duration, n int64, want outcome) move { return move{at: at, n: n, want: want} }

func ask(at time.Duration, n int64, wait time.Duration) move {
	return move{at: at, n: n, want: refused, wait: wait}
}

func each(at time.Duration, times int, want outcome) move {
	return move{at: at, n: 1, times: times, want: want}
}

func by(key string, m move) move {
	m.key = key
	return m
}

var quick = tb.Limit{Capacity: 10, Tokens: 15_000_000, Per: time.Second}

var backwards = on(fives, take(sec(10), 9, granted), take(sec(9), 1, granted),
	take(sec(10), 5, granted))

var lateOnGCRA = on(fives, take(0, 1, granted), take(sec(10), 8, granted),
	take(sec(9), 1, refused), take(sec(10), 2, granted))

func evicted() *script {
	return &script{limit: fives, maxKeys: 2, moves: []move{
		by("victim", take(0, 10, granted)), by("victim", take(0, 1, refused)),
		by("b", take(0, 1, granted)), by("c", take(0, 1, granted)),
		by("victim", take(0, 10, granted)),
	}}
}

var freshBurst = "The table evicts the key that was used least recently, drained or not, " +
	"and a key that comes back is full. Refused calls count as use. "

// expected are the columns that a limiter does not keep. Every other one it keeps, and
// is checked to keep.
var expected = map[string]map[string]cell{
	"x/time/rate": {
		"C1 late":     xtimeLate,
		"C1 eviction": {verdict: noKeys},
		"C5 time":     xtimeLate,
		"C7 bounded":  {verdict: noKeys},
		"C8 costs":    xtimeCosts,
	},
	"x/time/rate in golang-lru": {
		"C1 late": xtimeLate,
		"C1 eviction": {verdict: noClaim, script: evicted(), why: freshBurst +
			"That is what an LRU is, and neither package says more."},
		"C5 time":  xtimeLate,
		"C8 costs": xtimeCosts,
	},
	"throttled": {
		"C1 concurrent": {why: "But by default, a call that loses ten compare-and-swaps in a " +
			"row is neither granted nor refused: it gets an error. SetMaxCASAttemptsLimit " +
			"sets how many."},
		"C1 eviction": {verdict: noClaim, script: evicted(), why: freshBurst +
			"The documentation says that there is an LRU, and no more."},
		"C1, C2 no drift": {verdict: noClaim,
			script: on(quick, take(0, 10, granted), take(660, 10, granted)),
			why: "A token takes a whole number of nanoseconds, rounded down. At 3 a second " +
				"the rate is 10⁻⁹ too high, at 15 million a second 1%."},
		"C5 time": {verdict: noClaim, script: lateOnGCRA,
			why: "GCRA keeps one instant and not the bucket's own time. A late call is " +
				"refused what the bucket holds. It never gets more."},
		"C8 costs": {verdict: breaks,
			script: on(slow, take(0, 10, granted), take(0, 1, refused), take(0, -5, granted),
				take(0, 5, granted), take(0, 1, refused), take(0, 2_562_048, granted),
				take(0, 10, granted)),
			why: "Cost times interval overflows: 2,562,048 hours are more than 2⁶³ ns. The " +
				"call is granted, although the documentation has a most that is permitted " +
				"at once, and the bucket is full after it. A negative cost gives " +
				"tokens back; about these the documentation says nothing."},
	},
	"sethvargo/go-limiter": {
		"C1 bound": {verdict: noClaim,
			script: on(slow, each(0, 1, granted), each(hrs(9)+59*time.Minute, 9, granted),
				each(hrs(10), 10, granted)),
			why: "It counts in windows of fixed length, from a key's first call on, and says " +
				"so: the tokens are those of an interval."},
		"C1 late":     {verdict: ownClock},
		"C1 eviction": {verdict: noBound},
		"C2 no lost credit": {verdict: noClaim,
			script: on(slow, each(0, 10, granted), each(hrs(9), 1, refused)),
			why:    "Nothing comes back before the window is over."},
		"C1, C2 no drift": {verdict: windows},
		"C3 never":        {verdict: noCosts},
		"C5 time":         {verdict: ownClock},
		"C7 bounded":      unbound,
		"C8 costs":        {verdict: noCosts},
	},
	"ulule/limiter": {
		"C1 bound": {verdict: noClaim,
			script: on(fives, take(0, 1, granted), take(sec(1.99), 9, granted),
				take(sec(2)+1, 10, granted)),
			why: "It counts in windows of fixed length, from a key's first call on. A rate " +
				"is documented as a number of requests per period."},
		"C1 late":     {verdict: ownClock},
		"C1 eviction": {verdict: noBound},
		"C2 no lost credit": {verdict: noClaim,
			script: on(fives, take(0, 10, granted), take(sec(1.9), 1, refused),
				take(sec(2.1), 7, granted), take(sec(2.1), 7, refused),
				take(sec(2.1), 3, refused)),
			why: "Nothing comes back before the window is over, and what is refused is " +
				"counted like what is granted."},
		"C1, C2 no drift": {verdict: windows},
		"C3 exact wait": {verdict: noClaim,
			script: on(fives, take(0, 10, granted), ask(0, 1, sec(1.5)),
				take(sec(1.5), 1, refused), take(sec(2), 1, refused),
				take(sec(2)+1, 1, granted)),
			why: "Reset is a Unix time in whole seconds, rounded down. (Here t = 0 is half " +
				"a second after a whole one.)"},
		"C3 never": {verdict: noClaim, script: on(fives, ask(0, 11, sec(1.5))),
			why: "Reset is the end of the window for every call."},
		"C5 time":    {verdict: ownClock},
		"C7 bounded": unbound,
		"C8 costs": {verdict: breaks,
			script: on(fives, take(0, 10, granted), take(0, 1, refused),
				take(0, math.MaxInt64-1, granted), take(0, 1_000_000, granted)),
			why: "The counter overflows. The huge call and all after it are granted until " +
				"the window is over. A negative cost gives tokens back; about these the " +
				"documentation says nothing."},
	},
	"juju/ratelimit": {
		"C1 bound": {verdict: noClaim,
			script: on(fives, take(sec(0.19), 10, granted), take(sec(0.2), 1, granted)),
			why: "Tokens come at the ticks of a clock that starts with the bucket, as its " +
				"documentation says. So up to one more than the bound is granted."},
		"C1 eviction": {verdict: noKeys},
		"C1, C2 no drift": {verdict: noClaim,
			script: on(quick, take(0, 10, granted), take(665, 10, granted)),
			why:    "The rate is within 1% of what is asked for, as documented."},
		"C3 exact wait": {verdict: noWait},
		"C3 never":      {verdict: noWait},
		"C5 time": {verdict: noClaim, script: lateOnGCRA,
			why: "A clock that goes back takes away the tokens that came since, and gives " +
				"them again. A late call is refused what the bucket holds. It never gets " +
				"more, and as the clock is read under the lock, only a clock that steps " +
				"back makes a call late."},
		"C7 bounded": {verdict: noKeys},
		"C8 costs": {verdict: breaks,
			script: on(slow, take(0, 10, granted), take(0, 2_562_048, granted),
				take(0, 1_000_000, granted)),
			why: "The wait overflows and is negative, which is less than the longest wait " +
				"allowed. So TakeMaxDuration grants the huge call, and all after it, where " +
				"it is documented to do nothing."},
	},
	"uber-go/ratelimit": {
		"C1 eviction":       {verdict: noKeys},
		"C2 no lost credit": {verdict: waits},
		"C1, C2 no drift":   {verdict: waits},
		"C3 exact wait":     {verdict: waits},
		"C3 never":          {verdict: waits},
		"C5 time": {verdict: noClaim,
			script: on(fives, each(0, 1, granted), each(sec(10), 8, granted),
				each(sec(9), 1, "waits 800ms")),
			why: "It keeps one instant, like GCRA. A call on a clock that went back waits " +
				"although tokens are left, until the clock has caught up. It never gets more."},
		"C7 bounded": {verdict: noKeys},
		"C8 costs":   {verdict: noCosts},
	},
	"go-chi/httprate": httprateCells,
}
