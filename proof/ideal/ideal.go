// Package ideal has the continuous bucket of the contract of package tb, in exact fractions. A test
// charges it what an implementation grants. So the test shows how far the implementation is off
// after any number of calls. The bucket does not depend on units or words.
package ideal

import (
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Bucket is a bucket whose tokens grow at the rate up to the capacity. A slot is not a whole number
// of nanoseconds, so all times of a bucket are in tokens of supply. Make one with New.
type Bucket struct {
	limit    tb.Limit
	since    time.Time // when the limit began
	before   *big.Rat  // the supply until then
	greatest tb.Limit  // the one with the greatest capacity

	tokens *big.Rat // at its own time, negative in debt; nil before the first grant
	own    *big.Rat
	until  time.Time // the end of a hold, whose supply is the own time
	isRead bool      // that end, or the end of the last hold, was the own time before, a reading
	slack  *big.Rat
}

// New returns a full bucket.
func New(limit tb.Limit) *Bucket {
	return &Bucket{
		limit: limit, since: time.Unix(0, 0), before: new(big.Rat), greatest: limit, slack: new(big.Rat),
	}
}

// Rate returns the tokens that a limit supplies in a nanosecond.
func Rate(l tb.Limit) *big.Rat { return big.NewRat(l.Tokens, int64(l.Per)) }

// Quantum returns the coarsest resolution that the contract allows, in tokens.
func Quantum(l tb.Limit) *big.Rat {
	return most(big.NewRat(1, 1_000_000), big.NewRat(int64(l.Capacity), 1<<23))
}

// Supplied returns the tokens that have been supplied by t, which is not before the last Change.
// During a hold the limit of its end counts.
func (b *Bucket) Supplied(t time.Time) *big.Rat {
	ns := big.NewInt(t.Unix() - b.since.Unix()) // a Duration may be too short
	ns.Mul(ns, big.NewInt(1e9)).Add(ns, big.NewInt(int64(t.Nanosecond()-b.since.Nanosecond())))
	x := new(big.Rat).SetInt(ns)
	return x.Mul(x, Rate(b.limit)).Add(x, b.before)
}

// timeOf returns when a number of tokens has been supplied, to the next nanosecond.
func (b *Bucket) timeOf(supply *big.Rat) time.Time {
	x := new(big.Rat).Sub(supply, b.before)
	x.Quo(x, Rate(b.limit))
	ns := new(big.Int).Neg(x.Num())
	ns.Neg(ns.Div(ns, x.Denom()))
	s, ns := ns.DivMod(ns, big.NewInt(1e9), new(big.Int))
	return time.Unix(b.since.Unix()+s.Int64(), int64(b.since.Nanosecond())+ns.Int64())
}

// Tokens returns the tokens at t, negative in debt. At a late reading they are the tokens at the
// bucket's own time.
func (b *Bucket) Tokens(t time.Time) *big.Rat {
	tokens, _ := b.at(t)
	return tokens
}

// at returns the tokens at t, and the time of the bucket then: its own time if t is late.
func (b *Bucket) at(t time.Time) (tokens, own *big.Rat) {
	now := b.Supplied(t)
	if b.tokens == nil {
		return b.Capacity(), now
	}
	tokens = new(big.Rat).Set(b.tokens)
	if now.Cmp(b.own) <= 0 {
		return tokens, b.own
	}
	return least(tokens.Add(tokens, now).Sub(tokens, b.own), b.Capacity()), now
}

// Lacks returns the tokens to be supplied from t on until the bucket can pay a cost.
func (b *Bucket) Lacks(t time.Time, cost *big.Rat) *big.Rat {
	tokens, own := b.at(t)
	lack := new(big.Rat).Add(own, cost)
	return lack.Sub(lack, tokens).Sub(lack, b.Supplied(t))
}

// Take charges the bucket at t, into debt if it has less.
func (b *Bucket) Take(t time.Time, cost *big.Rat) {
	b.endHold(t)
	b.tokens, b.own = b.at(t)
	b.tokens.Sub(b.tokens, cost)
}

// Slot returns the time at which the bucket has paid for all that was taken.
func (b *Bucket) Slot() *big.Rat {
	debt := new(big.Rat).Neg(b.tokens)
	return debt.Add(b.own, most(debt, new(big.Rat)))
}

// Settle charges as much of a cost at t as the debt of one capacity allows, and returns the rest.
func (b *Bucket) Settle(t time.Time, cost *big.Rat) (unpaid *big.Rat) {
	paid := least(cost, new(big.Rat).Add(b.Capacity(), b.Tokens(t)))
	if paid.Sign() <= 0 {
		return cost
	}
	b.Take(t, paid)
	return new(big.Rat).Sub(cost, paid)
}

// Give gives tokens back at t. They pay the debt first. During a hold the rest is lost.
func (b *Bucket) Give(t time.Time, tokens *big.Rat) {
	if b.tokens == nil {
		return
	}
	b.endHold(t)
	most := b.Capacity()
	if b.Held(t) {
		most = new(big.Rat)
	}
	b.tokens = least(new(big.Rat).Add(b.tokens, tokens), most)
}

// Hold holds the bucket at t until a later time. What it owes then stays.
func (b *Bucket) Hold(t, until time.Time) {
	changed := b.slack.Sign() > 0 && !until.After(b.since)
	if changed || !until.After(t) || !until.After(b.until) {
		return
	}
	tokens, own := b.at(t)
	end := b.Supplied(until)
	debt := new(big.Rat).Add(tokens, end)
	if b.isRead = own.Cmp(end) > 0 && tokens.Sign() >= 0; b.isRead {
		debt.SetInt64(0)
		until = b.timeOf(own) // the bucket has had the supply until then
	} else {
		debt.Sub(debt, own)
		own = end
	}
	b.tokens, b.own, b.until = least(debt, new(big.Rat)), own, until
}

// Held reports whether the bucket is held at t.
func (b *Bucket) Held(t time.Time) bool { return t.Before(b.until) }

// Ends reports whether an implementation may hold the bucket at t or not: a hold that lasts until a
// reading ends within a quantum from it.
func (b *Bucket) Ends(t time.Time) bool {
	return b.isRead && !b.Held(t) && new(big.Rat).Sub(b.Supplied(t), b.own).Cmp(b.Quantum()) <= 0
}

// Counts returns the supply at which a charge at t counts: a hold leaves it until then.
func (b *Bucket) Counts(t time.Time) *big.Rat {
	if b.Held(t) {
		t = b.until
	}
	return b.Supplied(t)
}

// endHold ends a hold that is over at t: after a change of the bucket, or of the limit, a late
// reading meets no hold.
func (b *Bucket) endHold(t time.Time) {
	if !b.Held(t) {
		b.until = time.Time{}
	}
}

// Change makes limit the limit from t on, or from the end of a hold. The bucket keeps its tokens
// and its debt.
func (b *Bucket) Change(limit tb.Limit, t time.Time) {
	b.endHold(t)
	held := b.Held(t)
	if b.tokens != nil && !held {
		b.tokens, b.own = b.at(t)
	}
	b.slack.Add(b.slack, Rate(limit))
	if limit.Capacity != b.limit.Capacity {
		b.slack.Add(b.slack, Quantum(limit))
	}
	from := t
	if held {
		from = b.until
	}
	b.before, b.since, b.limit = b.Supplied(from), from, limit
	if limit.Capacity > b.greatest.Capacity {
		b.greatest = limit
	}
	b.Give(t, new(big.Rat)) // not more than the new capacity
}

// Slack returns by how much less than this bucket the contract allows an implementation to have
// because the limit has changed.
func (b *Bucket) Slack() *big.Rat { return b.slack }

// Quantum returns the greatest quantum of the limits: a bucket keeps its rounding when its limit
// changes.
func (b *Bucket) Quantum() *big.Rat { return Quantum(b.greatest) }

// Error returns by how much a refusal may differ from the decision of this bucket.
func (b *Bucket) Error() *big.Rat { return new(big.Rat).Add(b.Quantum(), b.slack) }

// Burst returns the most tokens that C1 allows at a moment: the greatest capacity, and a quantum.
func (b *Bucket) Burst() *big.Rat {
	c := big.NewRat(int64(b.greatest.Capacity), 1)
	return c.Add(c, b.Quantum())
}

// Capacity returns the capacity of the present limit.
func (b *Bucket) Capacity() *big.Rat { return big.NewRat(int64(b.limit.Capacity), 1) }

func least(x, y *big.Rat) *big.Rat {
	if x.Cmp(y) < 0 {
		return x
	}
	return y
}

func most(x, y *big.Rat) *big.Rat {
	if x.Cmp(y) > 0 {
		return x
	}
	return y
}
