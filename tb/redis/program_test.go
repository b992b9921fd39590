package redis

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// program is the steps on a bucket whose limit changes, and what tb/mutex does.
type program struct {
	seed   uint64
	limits []*layout
	steps  []step

	results []result // of the steps, on the script
}

// step is a call on a bucket.
type step struct {
	now    uint64 // µs
	tier   int
	kind   kind
	tokens float64
	within time.Duration // of a reservation
	keep   float64       // what a charge leaves
	hold   uint64        // µs
	of     int           // the step that is undone or settled
	reset  bool          // the bucket is full before the step

	before tb.Level
	want   tb.Decision
	delay  time.Duration
	after  tb.Level
}

// newProgram returns a random program, or false if a limit is out of range.
func newProgram(seed uint64) (*program, bool) {
	rng := rand.New(rand.NewPCG(seed, 15))
	p := &program{seed: seed}
	var limits []tb.Limit
	first, shallow := randomLimit(rng), false
	scale, most := uint64(0), uint64(0)
	for range 1 + rng.IntN(3) {
		limit := first
		switch rng.IntN(3) {
		case 0: // another rate
			limit.Per = max(limit.Per/time.Duration(1+rng.IntN(1000)), time.Duration(limit.Tokens))
		case 1: // another capacity
			limit.Capacity = int(min(tb.MaxCapacity, magnitude(rng, 4*uint64(limit.Capacity))))
		default:
			if len(limits) > 0 {
				limit = randomLimit(rng)
			}
		}
		m, err := newLayout(limit, 0)
		if err != nil {
			return nil, false
		}
		if len(limits) == 0 {
			first = limit
		}
		// A bucket keeps a debt of up to 2³² units after a change of the scale.
		newScale, newMost := max(scale, m.scale), max(most, uint64(limit.Capacity))
		if len(limits) > 0 && newScale != min(m.scale, p.limits[0].scale) {
			if newScale*newMost > 1<<31 {
				continue
			}
			shallow = true
		}
		same := func(o *layout) bool { return o.header == m.header }
		if slices.ContainsFunc(p.limits, same) { // in Redis it is the same limit
			continue
		}
		limits, p.limits = append(limits, limit), append(p.limits, m)
		scale, most = newScale, newMost
	}
	now := randomInstant(rng)
	oracle, err := mutex.NewTiered[string](limits, tb.WithClock(func() time.Time {
		return time.UnixMicro(int64(now))
	}))
	if err != nil {
		return nil, false
	}
	if _, err := oracle.AllowAt(time.Unix(0, 0), "the first reading", 1); err != nil {
		return nil, false
	}
	read := func() time.Time { return time.UnixMicro(int64(now)) }
	charge := func(tier int, cost float64) mutex.Charge[string] {
		c, err := oracle.ChargeIn(tier, "a", cost)
		if err != nil {
			panic(err)
		}
		return c
	}
	level := func(tier int) tb.Level {
		c := charge(tier, 1)
		v, _ := c.Level(read())
		return v
	}
	latest, floor, tier, retry := now, uint64(0), 0, time.Duration(0)
	back := uint64(time.Second / time.Microsecond) // a debt of 2³² units is not stored
	for _, m := range p.limits {
		back = min(back, uint64(deepest*float64(m.d)/float64(m.n)))
	}
	charges := map[int]*mutex.Charge[string]{}
	owed := false                    // the last grant has put the bucket in debt
	isNew := false                   // tb/mutex has forgotten the key
	held, behind := uint64(0), false // tb/mutex undoes only the latest reservation behind a hold
	var open []int                   // grants that are not settled or undone
	for range 10 + rng.IntN(50) {
		before := level(tier)
		now = max(floor, nextInstant(rng, now, latest, back, retry, before.Full))
		if now > lastInstant {
			break
		}
		if behind && now >= held {
			open, behind = nil, false
		}
		st := step{now: now, tier: tier}
		if now >= latest && rng.IntN(6) == 0 { // own time in between is cut to µs
			st.tier = rng.IntN(len(limits))
			if level(tier).Full == 0 && st.tier != tier { // in Redis it may have no key
				oracle.Forget("a")
				open = nil
				st.reset, isNew = true, true
			}
		}
		latest = max(latest, now)
		st.before = level(st.tier)
		kinds := []kind{kindTake, kindTake, kindReserve, kindReserve, kindLook, kindKeep}
		if rng.IntN(4) == 0 {
			kinds = append(kinds, kindHold)
		}
		ended := -1
		if len(open) > 0 {
			kinds = append(kinds, kindGiveBack, kindUndo)
			ended = rng.IntN(len(open))
			if rng.IntN(2) == 0 {
				ended = len(open) - 1
			}
			st.of = open[ended]
		}
		st.kind = kinds[rng.IntN(len(kinds))]
		if shallow && st.kind == kindReserve && st.before.Tokens < 0 {
			st.kind = kindTake
		}
		if now < latest && (st.kind == kindGiveBack || st.kind == kindUndo || st.kind == kindHold) {
			st.kind = kindLook // see floor
		}
		if st.kind == kindGiveBack || st.kind == kindUndo {
			open = slices.Delete(open, ended, ended+1)
		}
		switch st.kind {
		case kindTake, kindReserve, kindKeep:
			tier = st.tier
			st.tokens = randomCost(rng, limits[tier].Capacity, st.before.Tokens)
			c := charge(tier, st.tokens)
			if deeper(limits[tier], p.limits[tier], st.before.Full, st.tokens) {
				st.kind = kindTake
			}
			if st.kind == kindReserve {
				st.within = tb.Never
				if rng.IntN(3) == 0 {
					st.within = time.Duration(magnitude(rng, math.MaxInt64/1000)) * time.Microsecond
				}
				c.MayWait(st.within)
			}
			if st.kind == kindKeep {
				st.keep = randomCost(rng, limits[tier].Capacity, st.before.Tokens-st.tokens)
				c.Keep(st.keep)
			}
			st.want, _ = c.Take(read())
			st.delay = c.Delay()
			retry = st.want.RetryAfter
			if st.want.Allowed {
				charges[len(p.steps)] = &c
				if now < held {
					open, behind = nil, true
				}
				open = append(open, len(p.steps))
				isNew = false
			}
		case kindHold:
			if isNew { // tb/mutex puts it into the first tier
				tier, isNew = 0, false
			}
			st.tier = tier
			st.before = level(tier)
			st.hold = rng.Uint64N(1 << 40)
			if st.before.Full != tb.Never && rng.IntN(2) == 0 {
				st.hold = rng.Uint64N(2*uint64(st.before.Full)/1000 + 1_000_000)
			}
			st.hold = min(st.hold, lastInstant-now)
			held = max(held, now+st.hold)
			until := read().Add(time.Duration(st.hold) * time.Microsecond)
			if err := oracle.Hold(context.Background(), "a", until); err != nil {
				panic(err)
			}
		case kindUndo:
			st.tier = p.steps[st.of].tier
			charges[st.of].Cancel()
		case kindGiveBack:
			st.tier = tier
			st.before = level(tier)
			st.tokens = randomCost(rng, 2*limits[tier].Capacity, p.steps[st.of].tokens)
			if rng.IntN(3) == 0 {
				st.tokens = 0
			}
			if err := charges[st.of].Settle(st.tokens); err != nil {
				panic(err)
			}
		}
		if st.kind == kindGiveBack || st.kind == kindUndo {
			floor = now // a bucket that is not in debt any more has an older own time in tb/mutex
		}
		st.after = level(tier)
		if st.kind == kindGiveBack && owed && st.before.Tokens >= 0 {
			open = nil // in tb/mutex, the own time is the slot that has passed
		}
		if st.want.Allowed || st.kind == kindGiveBack {
			owed = st.after.Tokens < 0
		}
		p.steps = append(p.steps, st)
	}
	return p, true
}

// deeper reports whether a reservation may put a bucket into a debt that only tb/mutex keeps.
func deeper(limit tb.Limit, m *layout, full time.Duration, tokens float64) bool {
	lacks := float64(full) * float64(limit.Tokens) / float64(limit.Per)
	return (lacks+tokens-float64(limit.Capacity))*float64(m.scale) > 0.999*deepest
}

// randomLimit returns a limit of any size, often at an edge of the scripts.
func randomLimit(rng *rand.Rand) tb.Limit {
	l := tb.Limit{
		Capacity: int(magnitude(rng, tb.MaxCapacity)),
		Per:      time.Duration(magnitude(rng, math.MaxInt64)),
	}
	switch rng.IntN(5) {
	case 0: // round numbers
		l.Capacity = 1 + rng.IntN(1000)
		l.Per = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[rng.IntN(4)]
	case 1: // the divisor is near the edge of a double, or of the script
		edge := []int64{1 << 26, 1 << rateBits}[rng.IntN(2)]
		l.Per = time.Duration(1000 * (edge - 5 + rng.Int64N(10)))
	case 2: // both numbers of the rate are near the edge of the script
		l.Capacity = unit.Least + rng.IntN(tb.MaxCapacity-unit.Least)
		l.Per = time.Duration(1000 * (1<<rateBits - magnitude(rng, 1<<40)))
		l.Tokens = 1<<rateBits - int64(magnitude(rng, 1<<47))
		return l
	case 3: // the product of capacity and divisor is near 2⁵³
		scale, _ := unit.Scale(l.Capacity)
		units := int64(l.Capacity) * int64(scale)
		l.Per = time.Duration(1000 * max(1, (1<<53)/(units+2)-5+rng.Int64N(10)))
	}
	l.Tokens = int64(magnitude(rng, uint64(l.Per)))
	return l
}

// magnitude returns a number from 1 to most. All its lengths in bits are as likely.
func magnitude(rng *rand.Rand, most uint64) uint64 {
	return 1 + (rng.Uint64()>>rng.IntN(64))%most
}

func randomInstant(rng *rand.Rand) uint64 {
	switch rng.IntN(4) {
	case 0:
		return rng.Uint64N(3_000_000)
	case 1:
		return lastInstant - magnitude(rng, lastInstant)
	}
	return 1_700_000_000_000_000 + rng.Uint64N(1<<50)
}

// nextInstant returns the time of a step: where the last refusal or the level changes, or a random
// one, at most back before the latest.
func nextInstant(rng *rand.Rand, now, latest, back uint64, retry, full time.Duration) uint64 {
	at := func(wait time.Duration) uint64 { // the first µs at which the wait is over, or one before
		if wait == tb.Never {
			return now
		}
		return now + (uint64(wait)+999)/1000 - uint64(rng.IntN(2))
	}
	switch rng.IntN(8) {
	case 0:
		now = at(retry)
	case 1:
		now = at(full)
	case 2:
		now = latest - min(latest, rng.Uint64N(back+1))
	case 3:
		now = latest - min(latest, back)
	case 4:
		now += magnitude(rng, 1<<40)
	case 5, 6:
		if full != tb.Never {
			now += rng.Uint64N(uint64(full)/1000/uint64(1+rng.IntN(50)) + 2)
		}
	}
	return max(now, latest-min(latest, back))
}

// randomCost returns a cost, often one that the tokens just pay.
func randomCost(rng *rand.Rand, capacity int, tokens float64) float64 {
	switch rng.IntN(6) {
	case 0:
		return 1
	case 1:
		return float64(magnitude(rng, uint64(capacity)))
	case 2:
		return math.Max(1e-6, tokens)
	case 3:
		return float64(capacity) * math.Max(1e-9, rng.Float64()) / float64(1+rng.IntN(10))
	case 4:
		return float64(capacity + rng.IntN(2))
	}
	return math.Max(1e-6, math.Round(rng.Float64()*float64(capacity)*1000)/1000)
}
