package outbound

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A key of a rule without a limit has this one until the server says another. If the server
// refuses, or says that nothing is left, but not what the limit is, one attempt at a time may go.
var unlimited = tb.Limit{Capacity: 1 << 20, Tokens: 1_000_000, Per: time.Second}

const (
	memoryOfLimits = time.Hour        // of a limit that the server no longer says
	longestTurn    = 10 * time.Second // of an attempt whose answer does not come
)

// learn gives the key of a rule without a limit the limit that the response says. stops means that
// the server has refused, or has nothing left.
func (a *attempt) learn(p *part, x *answer, stops bool, now time.Time) {
	k := p.key
	k.takes.Lock() // so that of answers which come at the same time, one drains
	defer k.takes.Unlock()
	limit := k.limiter.Limit()
	said, left := x.limitOf(p.rule.Unit)
	switch {
	case said != unlimited:
		k.heard = now
		// A reset comes nearer, so that of one number the longest window counts.
		if said.Capacity != limit.Capacity || said.Per > limit.Per {
			limit = said
		}
	case now.Sub(k.heard) > memoryOfLimits:
		limit = unlimited
	}
	isLimited := limit != unlimited
	isLast := p.endTurn != nil && k.users.Load() == 1
	k.isSingle.Store(!isLimited && (stops || k.isSingle.Load() && !isLast))
	if limit != k.limiter.Limit() { // what waits takes anew
		a.t.move(k, now.Add(tb.Never), func() { _ = k.limiter.SetLimit(limit) })
	}
	if level, err := p.charge.Level(now); isLimited && err == nil && level.Tokens >= left+1 {
		p.drain(left, now) // in whole tokens
	}
}

// limitOf returns the limit of a unit that a response says, or unlimited, and what is left of it.
// Of several it is the one with the shortest window.
func (x *answer) limitOf(unit Unit) (limit tb.Limit, left float64) {
	limit, left = unlimited, infinite
	for _, n := range x.notices {
		tokens := int64(min(n.limit, tb.MaxCapacity, float64(n.window)))
		isBetter := limit == unlimited || n.window < limit.Per
		if isBetter && tokens > 0 && n.limit < infinite && (n.unit == unit || n.unit == anyUnit) {
			limit, left = tb.Limit{Capacity: int(tokens), Tokens: tokens, Per: n.window}, n.remaining
		}
	}
	return limit, left
}
