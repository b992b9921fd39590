package fuzz

import (
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// timeline is the supply of a limit that changes, in tokens since time.Unix(0, 0).
type timeline []change

// change is a limit, the time from which on it holds, and the supply until then.
type change struct {
	limit tb.Limit
	at    time.Time
	until *big.Rat
}

func newTimeline(l tb.Limit) timeline {
	return timeline{{l, time.Unix(0, 0), new(big.Rat)}}
}

func (l timeline) limit() tb.Limit { return l[len(l)-1].limit }

// rate is in tokens per nanosecond.
func (l timeline) rate() *big.Rat { return big.NewRat(l.limit().Tokens, int64(l.limit().Per)) }

func (l timeline) capacity() *big.Rat { return tokens(l.limit().Capacity) }

// quantum returns the greatest quantum of the limits: a bucket keeps its rounding when its limit
// changes.
func (l timeline) quantum() *big.Rat {
	most := new(big.Rat)
	for _, c := range l {
		if q := quantum(c.limit); q.Cmp(most) > 0 {
			most = q
		}
	}
	return most
}

// deepest is the most debt that a call may wait for.
var deepest = big.NewRat(2*tb.MaxCapacity, 1)

// greatest returns the greatest capacity.
func (l timeline) greatest() *big.Rat {
	most := 0
	for _, c := range l {
		most = max(most, c.limit.Capacity)
	}
	return tokens(most)
}

// by returns the tokens that have been supplied by t, which is not before the last change.
func (l timeline) by(t time.Time) *big.Rat {
	last := l[len(l)-1]
	x := new(big.Rat).Mul(l.rate(), nanoseconds(last.at, t))
	return x.Add(x, last.until)
}

// change makes next the limit from t on.
func (l timeline) change(next tb.Limit, t time.Time) timeline {
	return append(l, change{next, t, l.by(t)})
}

func tokens(n int) *big.Rat { return big.NewRat(int64(n), 1) }

// quantum returns the error that the contract allows, in tokens.
func quantum(l tb.Limit) *big.Rat {
	q := big.NewRat(1, 1_000_000)
	if c := big.NewRat(int64(l.Capacity), 1<<23); c.Cmp(q) > 0 {
		return c
	}
	return q
}

// nanoseconds returns the time from a to b, which may exceed a time.Duration.
func nanoseconds(a, b time.Time) *big.Rat {
	s := new(big.Int).Sub(big.NewInt(b.Unix()), big.NewInt(a.Unix()))
	s.Mul(s, big.NewInt(1e9))
	s.Add(s, big.NewInt(int64(b.Nanosecond()-a.Nanosecond())))
	return new(big.Rat).SetInt(s)
}

// ideal is the continuous bucket of the contract: its tokens grow at the rate up to the capacity.
// It is charged the grants of an implementation, and so it shows how far the implementation is
// off after any number of calls. It does not depend on units or words. Its time is in tokens of
// supply.
type ideal struct {
	supply timeline
	tokens *big.Rat // at its time; nil before the first grant
	at     *big.Rat // of the latest grant: the slot if that is a reservation
	inDebt bool     // until its time
	// slack is how much less than the ideal bucket an implementation may have: each change of
	// the limit rounds.
	slack   *big.Rat
	granted []grant
}

// grant is a grant of cost tokens at a time in supply.
type grant struct {
	at, cost *big.Rat
}

func newIdeal(supply timeline) *ideal { return &ideal{supply: supply, slack: new(big.Rat)} }

// error returns by how much a refusal may differ from the decision of the ideal bucket.
func (b *ideal) error() *big.Rat { return new(big.Rat).Add(b.supply.quantum(), b.slack) }

// holds returns the tokens at t, and the time of the bucket then: its own time if t is late, or
// before a slot.
func (b *ideal) holds(t time.Time) (tokens, at *big.Rat) {
	now := b.supply.by(t)
	if b.tokens == nil {
		return b.supply.capacity(), now
	}
	if now.Cmp(b.at) <= 0 {
		return b.tokens, b.at
	}
	gain := new(big.Rat).Sub(now, b.at)
	return least(gain.Add(gain, b.tokens), b.supply.capacity()), now
}

// lacks returns the units of supply from t until the bucket can pay a cost.
func (b *ideal) lacks(t time.Time, cost *big.Rat) *big.Rat {
	tokens, at := b.holds(t)
	slot := new(big.Rat).Add(at, cost)
	slot.Sub(slot, tokens)
	return slot.Sub(slot, b.supply.by(t))
}

// take charges the bucket, which must have the cost.
func (b *ideal) take(t time.Time, cost *big.Rat) {
	tokens, at := b.holds(t)
	b.tokens, b.at, b.inDebt = new(big.Rat).Sub(tokens, cost), at, false
	b.granted = append(b.granted, grant{at, cost})
}

// reserve charges the bucket, and moves its time to the slot at which it has the cost.
func (b *ideal) reserve(t time.Time, cost *big.Rat) {
	tokens, at := b.holds(t)
	lack := new(big.Rat).Sub(cost, tokens)
	b.tokens, b.at, b.inDebt = new(big.Rat), lack.Add(lack, at), true
	b.granted = append(b.granted, grant{b.at, cost})
}

// change makes next the limit from t on. It keeps the tokens and the debt.
func (b *ideal) change(supply timeline, t time.Time) {
	if b.tokens != nil {
		b.tokens, b.at = b.holds(t)
		b.tokens = least(b.tokens, supply.capacity())
	}
	for _, l := range []timeline{b.supply, supply} {
		b.slack = new(big.Rat).Add(b.slack, l.quantum())
	}
	b.slack.Add(b.slack, supply.rate())
	b.supply = supply
}

// refund gives back a part of a cost at t. It pays the debt first.
func (b *ideal) refund(t time.Time, part *big.Rat) {
	if b.tokens == nil {
		return
	}
	if debt := new(big.Rat).Sub(b.at, b.supply.by(t)); debt.Sign() > 0 && b.inDebt {
		paid := least(debt, part)
		b.at = new(big.Rat).Sub(b.at, paid)
		part = new(big.Rat).Sub(part, paid)
	}
	b.tokens = least(new(big.Rat).Add(b.tokens, part), b.supply.capacity())
}

// charge charges as much of a cost at t as the debt of one capacity allows, and returns the rest.
func (b *ideal) charge(t time.Time, cost *big.Rat) (unpaid *big.Rat) {
	tokens, at := b.holds(t)
	room := b.supply.capacity()
	room.Sub(room, b.lacks(t, new(big.Rat))) // what it may still be in debt
	paid := least(cost, room)
	if paid.Sign() <= 0 {
		return cost
	}
	b.tokens, b.at, b.inDebt = new(big.Rat).Sub(tokens, paid), at, false
	if b.tokens.Sign() < 0 {
		b.tokens, b.at, b.inDebt = new(big.Rat), new(big.Rat).Sub(at, b.tokens), true
	}
	return new(big.Rat).Sub(cost, paid)
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// checkBound checks C1, but for the given error, on every interval between two grants. It returns
// the reason if C1 is violated.
func (b *ideal) checkBound(error *big.Rat) string {
	for i, first := range b.granted {
		sum := new(big.Rat)
		for _, last := range b.granted[i:] {
			sum.Add(sum, last.cost)
			bound := new(big.Rat).Sub(last.at, first.at)
			bound.Add(bound, b.supply.greatest()).Add(bound, error)
			if sum.Cmp(bound) > 0 {
				return "granted " + sum.FloatString(9) + " from " + first.at.FloatString(9) + " to " +
					last.at.FloatString(9) + " of supply, where " + bound.FloatString(9) + " are allowed"
			}
		}
	}
	return ""
}
