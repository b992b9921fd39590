package mutex

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Bounds that the words of tb/cas need. They are here too, because both packages must give the same
// answers.
const (
	// maxDebt is the most tokens that calls of Wait may put a bucket into debt.
	maxDebt = 2 * tb.MaxCapacity

	// deepestDebt is the deepest debt in tokens that a change of the limit or a Snapshot keeps.
	deepestDebt = 1 << 32

	// mostDebt is the most units of debt that a level reports.
	mostDebt = 1 << 61

	// mostSettled is the most units of an actual cost.
	mostSettled = 1 << 52
)

// millionths is how many millionths a token has.
const millionths = 1_000_000

// state is what a bucket has. In debt, it is empty at its time, which is the slot of a reservation.
type state struct {
	tokens int64 // units
	time   wide  // as the supply clock shows it
	inDebt bool
	limit  *limit // of these units and this time
	moves  int    // to other limits, and states that were not left by a call
	hold          // from which the tokens and the time of a held bucket follow
}

// first returns a full bucket that starts at now.
func (l *limit) first(now uint64) *state {
	return &state{tokens: l.capacity, time: l.supply(now), limit: l}
}

// refilled returns the tokens of b, and the time since which it has them: now, or b's own time if
// that is later.
func (l *limit) refilled(b *state, now uint64) (tokens int64, since wide) {
	if t := l.supply(now); b.time.less(t) {
		return min(l.capacity, b.tokens+t.above(b.time, l.capacity)), t
	}
	return b.tokens, b.time
}

// call is what a call asks of a bucket, and what it gets.
type call struct {
	tokens float64
	debt   func(*limit) int64 // the most debt in units; nil for a call that does not wait
	within time.Duration      // the longest delay of a call that waits
	keep   float64            // the tokens that must be left; only without debt
	hold   time.Duration      // for which a refusal holds the bucket; only without debt
	tier   int                // that ChargeIn names, plus 1
	look   bool               // decide, and change nothing

	tb.Decision
	delay time.Duration
}

func oneCapacity(l *limit) int64 { return l.capacity }
func deepest(l *limit) int64     { return maxDebt * l.scale }

// charge decides a call at now on a bucket, and changes its state if the call is granted, or if its
// refusal holds the bucket.
func (l *limit) charge(b *state, now uint64, c *call) {
	tokens, since := l.refilled(b, now)
	cost, keep := l.unitsOf(c.tokens), l.unitsOf(c.keep)
	if cost+keep <= tokens {
		b.tokens, b.time, b.inDebt = tokens-cost, since, false
		c.Decision = tb.Decision{Allowed: true, Remaining: int((b.tokens - keep) / l.scale)}
		return
	}
	if c.hold > 0 && cost+keep <= l.capacity && b.until == 0 {
		if until := l.after(now, c.hold); until > max(now, l.begin) {
			b.holdTo(until)
			*b = *b.in(l, now)
			tokens, since = b.tokens, b.time
		}
	}
	slot := since.plus(uint64(cost + keep - tokens))
	c.Decision = tb.Decision{RetryAfter: tb.Never, Remaining: int(max(0, tokens-keep) / l.scale)}
	if cost+keep <= l.capacity {
		c.RetryAfter = l.waitFor(now, slot)
	}
	if c.delay = c.RetryAfter; c.debt == nil || c.delay == tb.Never {
		return
	}
	debt := uint64(c.debt(l))
	tooDeep := l.supply(now).plus(debt).less(slot)
	if !tooDeep && c.delay <= c.within {
		c.Decision = tb.Decision{Allowed: true}
		b.tokens, b.time, b.inDebt = 0, slot, true
		return
	}
	if c.RetryAfter = max(0, c.delay-c.within); tooDeep {
		c.RetryAfter = max(c.RetryAfter, l.waitFor(now, slot.minus(wide{lo: debt})))
	}
}

// chargeMost charges b at now as many of a number of units as a debt of one capacity allows, and
// returns them. It charges none if the clock ends before the slot.
func (l *limit) chargeMost(b *state, now uint64, units int64) int64 {
	tokens, since := l.refilled(b, now)
	full := since.plus(uint64(l.capacity - tokens))
	units = l.supply(max(now, b.until)).plus(uint64(2*l.capacity)).above(full, units)
	b.tokens, b.time, b.inDebt = tokens, since, b.inDebt && l.supply(now).less(since)
	if units <= tokens {
		b.tokens -= units
		return units
	}
	slot := since.plus(uint64(units - tokens))
	if l.waitFor(now, slot) == tb.Never {
		return 0
	}
	b.tokens, b.time, b.inDebt = 0, slot, true
	return units
}

// refund gives b units back at now. They first pay its debt.
func (l *limit) refund(b *state, now uint64, units int64) {
	if b.inDebt {
		debt := b.time.above(l.supply(now), math.MaxInt64)
		paid := min(units, debt)
		b.time = b.time.minus(wide{lo: uint64(paid)})
		b.inDebt = paid < debt
		units -= paid
	}
	b.tokens = min(l.capacity, b.tokens+units)
}

// inherit returns the state of a bucket if l takes the place of its limit at instant t. The bucket
// keeps its tokens and its debt.
func (l *limit) inherit(b *state, t uint64) *state {
	tokens, since := b.limit.tokensAt(b, max(t, b.limit.begin))
	s := l.stateWith(tokens, l.supply(max(since, l.begin)))
	s.moves = b.moves + 1
	return s
}

// tokensAt returns what b has at instant t, in millionths of a token, negative in debt. If b's own
// time is later and it is not in debt, since is its own time, the last instant with that supply.
// Otherwise since is t.
func (l *limit) tokensAt(b *state, t uint64) (tokens int64, since uint64) {
	now := l.supply(t)
	if b.inDebt || !now.less(b.time) {
		full := b.time.plus(uint64(l.capacity - b.tokens))
		missing := full.above(now, l.capacity+deepestDebt*l.scale)
		return l.micros(l.capacity) - l.micros(missing), t
	}
	return l.micros(b.tokens), l.timeOf(b.time.plus(1)) - 1
}

// stateWith returns the state of a bucket that has a number of tokens, in millionths, since a time.
// A part of a unit is lost.
func (l *limit) stateWith(tokens int64, since wide) *state {
	perUnit := millionths / l.scale
	if tokens < 0 {
		tokens -= perUnit - 1
	}
	return l.stateOf(tokens/perUnit, since)
}

// stateOf returns the state of a bucket that has a number of units since a time, negative in debt.
func (l *limit) stateOf(units int64, since wide) *state {
	if units < 0 {
		return &state{time: since.plus(uint64(-units)), inDebt: true, limit: l}
	}
	return &state{tokens: min(l.capacity, units), time: since, limit: l}
}
